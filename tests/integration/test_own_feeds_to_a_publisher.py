"""A reader who followed their own feeds points the same folder at a publisher's backend.

Oracle: what was read before, and the requests received by each in-memory backend.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.testclient import TestClient

from device_app.app import create_app
from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import ReleaseRefused
from device_app.settings import DeviceSettings
from tests.doubles.backend import FakeBackend
from tests.doubles.new_page import new_page
from tests.doubles.news import synthetic_pool
from tests.doubles.pages_reader import FOLLOWS_A_LINK, enter


def device_of(folder: Path, backend: FakeBackend, **settings: object) -> Device:
    made = DeviceSettings(data_dir=folder, **settings)  # type: ignore[arg-type]
    return build_device(made, transport=backend.transport(), chance=random.Random(1))


def read_own(folder: Path) -> tuple[FakeBackend, list[str]]:
    """Read some stories of own feeds; return the server and the opened ids, the last one saved."""
    own = FakeBackend(pool_codes=True)
    device = device_of(folder, own, own_feeds=True)
    device.interests.choose_sections(("section2",))
    opened = [item.card.id for item in new_page(device).items[:5]]
    for news_id in opened:
        device.reading.open(news_id)
    device.library.react(opened[-1], "save")
    device.close()
    return own, opened


@pytest.fixture
def publisher() -> FakeBackend:
    """A server with other articles, another key and another encoder."""
    pool = synthetic_pool(seed=9)
    theirs = tuple(card.model_copy(update={"id": f"publisher:{card.id}"}) for card in pool.cards)
    return FakeBackend(pool=replace(pool, cards=theirs), encoder="f" * 64)


def test_reading_from_own_feeds_is_kept_but_not_reported_until_the_reader_agrees(
    tmp_path: Path, publisher: FakeBackend
) -> None:
    own, opened = read_own(tmp_path)
    assert not [path for method, path, _ in own.requests if path.startswith("/v1/recall")]
    assert publisher.key is not None
    key = publisher.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    device = device_of(tmp_path, publisher, backend_key=key)
    device.sync()
    page = new_page(device)
    assert page.items
    assert {item.card.id for item in page.items} <= {card.id for card in publisher.pool.cards}
    assert [entry.news_id for entry in device.library.history().entries] == opened[::-1]
    assert [card.id for card in device.library.saved()] == opened[-1:]
    assert device.status().chosen_sections == ("section2",)
    kept = device.privacy.overview().settings
    assert (kept.mode, kept.counting, kept.training) == ("broadcast", False, False)
    for item in page.items[:4]:
        device.reading.open(item.card.id)
    new_page(device)
    assert not [path for method, path, _ in publisher.requests if path.startswith("/v1/recall")]
    device.privacy.change(mode="code")
    new_page(device)
    assert [path for method, path, _ in publisher.requests if path.startswith("/v1/recall")], "now it may"
    device.close()


def said_on_privacy(device: Device) -> set[str]:
    """Return every sentence, heading and cell of the page, in open and closed drawers."""
    app = create_app(device=device)
    home = f"http://127.0.0.1:{device.settings.port}"
    browser = enter(TestClient(app, base_url=home, headers=FOLLOWS_A_LINK), app.state.page_key)
    main = browser.get("/privacy?show=all").text.partition("<main")[2].partition("</main>")[0]
    blocks = re.split(r"</?(?:p|h\d|td|th|dt|dd|li|div|caption|summary|a|span|table|section)\b[^>]*>", main)
    texts = (" ".join(re.sub(r"<[^>]+>", "", block).split()) for block in blocks)
    return {sentence for text in texts for sentence in re.split(r"(?<=[.!?])\s+", text) if sentence}


def test_own_feeds_privacy_page_shows_no_budget(tmp_path: Path, publisher: FakeBackend) -> None:
    own, opened = read_own(tmp_path)
    device = device_of(tmp_path, own, own_feeds=True)
    device.sync()
    said = said_on_privacy(device)
    in_the_log = ("Download of ", "Check of ", "Repeated requests are grouped")
    of_others = re.compile(
        r"report|budget|epsilon|noise|blurred|newsroom|group|round|train|every device|everyone|reveals", re.I
    )
    assert {one for one in said if of_others.search(one) and not one.startswith(in_the_log)} == {
        "Reports, group counts and training rounds",
        "Nothing: no report is made, and your stories are found on this computer, in a copy of all 800 of them.",
    }
    assert {f"{len(opened)} clicks", "0 searches, 0 topics"} <= said
    assert any(sentence.startswith("800 in ") for sentence in said)
    device.privacy.change(mode="code")
    assert any("Budget" in sentence for sentence in said_on_privacy(device)), "whoever reports is told what it costs"
    device.close()


def test_releases_without_the_publishers_key_are_refused(tmp_path: Path, publisher: FakeBackend) -> None:
    read_own(tmp_path)
    device = device_of(tmp_path, publisher)
    with pytest.raises(ReleaseRefused):
        device.sync()
    assert device.status().shield == "red"
    device.close()
