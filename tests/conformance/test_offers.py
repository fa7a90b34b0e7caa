"""The browser's next page shows as many new stories as the page before it offered.

Oracle: the stories that arrived, counted on the page. tests/unit/device_app/journeys/test_still_pages.py has the Python
device's half.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from device_app.composition import build_device
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import DeviceSettings, PerformanceSettings
from tests.conformance.node_end import ask_node
from tests.doubles.arrivals import stories_arrive
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.new_page import new_page
from tests.doubles.news import card, synthetic_pool
from tests.doubles.topic_readers import copied

pytestmark = pytest.mark.node
ARRIVED = 40


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_browser_shows_the_number_of_new_stories_it_offered(tmp_path: Path, seed: int) -> None:
    clock = StillClock(datetime(2026, 11, 20, 8, tzinfo=UTC))
    backend = FakeBackend(pool=synthetic_pool(), pool_codes=True)
    device = build_device(
        DeviceSettings(data_dir=tmp_path, performance=PerformanceSettings(default_list_limit=100, watch_backend=False)),
        transport=backend.transport(),
        noise=SeededNoise(seed),
        chance=random.Random(seed),
        clock=clock,
    )
    try:
        device.sync()
        topic = backend.pool.of_topic(f"section{seed} topic1")[:5]
        read = [backend.pool.cards[row] for row in topic]
        device.whole_pool.show(read)
        for each in read:
            device.parts.stores.clicks.add(each.id, None, clock())
            device.parts.stores.read_marks.opened(each.id, clock())
        new_page(device)
        clock.go_on(1_800)
        new = [
            card(
                f"new{n}",
                title=f"Word{n} thing{n}",
                published_at=clock(),
                section=f"section{n % 8}",
                topic=f"section{n % 8} topic1",
                publisher=f"Publisher {n}",
            )
            for n in range(ARRIVED)
        ]
        stories_arrive(device, new, clock())
    finally:
        device.close()
    file = tmp_path / "reader.sqlite"
    copied(device.settings.database, file)
    clock.go_on(60)
    asked = {
        "file": file.as_uri(),
        "searches": None,
        "privacy": device.settings.privacy.model_dump(),
        "url": "http://127.0.0.1:9",
        "key": "00" * 32,
        "seed": str(seed),
        "now": clock().timestamp() * 1_000,
        "more": False,
        "known": [each.id for each in new],
    }
    blobs = [each.as_uri() for each in sorted((device.settings.home / "blobs").iterdir())]
    _, found = ask_node([("feed_blobs", blobs), ("feed_offered", asked)])
    assert (found["untold"], found["again"]) == (None, None), "no number before one is known, nor on a kept page"
    assert 0 < found["offer"] < ARRIVED
    assert len(found["shown"]) == found["offer"]
    assert sorted(found["came"]) == sorted(found["shown"])
