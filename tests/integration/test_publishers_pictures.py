"""A feed with pictures, from the publisher through a backend to devices of both kinds.

The publisher listens on 127.0.0.2, a network that the test allows, and serves a JPEG, a PNG, a WebP, and a file that is
no picture. Oracles: the publisher's requests, and Pillow, which reads what both devices store.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from backend.news.public_addresses import networks
from device_app.settings import PrivacySettings
from protocol.pictures import PictureList
from tests.conformance.node_end import ask_node
from tests.doubles.picture_files import picture_file
from tests.doubles.recording_web_server import RecordingWebServer
from tests.doubles.small_world import SmallWorld

HOST = "127.0.0.2"
FILES = {
    "/ferry.jpg": picture_file("JPEG"),
    "/harbour.png": picture_file("PNG", (640, 640), "navy"),
    "/gulls.webp": picture_file("WEBP", (900, 500), "olive"),
    "/drawn.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
}
STORIES = (
    "Ferry sails at dawn again",
    "Harbour walls are mended",
    "Gulls return to the old pier",
    "A drawing of boats",
)
NAMED = (
    '<enclosure url="{at}ferry.jpg" type="image/jpeg" length="1"/>',
    '<media:content url="{at}harbour.png" medium="image"/>',
    '<media:thumbnail url="{at}gulls.webp"/>',
    '<media:content url="{at}drawn.svg" medium="image"/>',
)


@pytest.fixture
def publisher() -> Iterator[RecordingWebServer]:
    made = RecordingWebServer(HOST)
    now = datetime.now(UTC)
    items = "".join(
        f"<item><title>{title}</title><link>{made.url}{at}</link>{named.format(at=made.url)}"
        f"<pubDate>{now - timedelta(minutes=at):%a, %d %b %Y %H:%M:%S} GMT</pubDate></item>"
        for at, (title, named) in enumerate(zip(STORIES, NAMED, strict=True))
    )
    feed = (
        '<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel><title>The Quay</title>'
        f"<link>{made.url}</link>{items}</channel></rss>"
    )
    made.answer = lambda path: FILES.get(path, feed.encode())
    yield made
    made.close()


def step_until(world: SmallWorld, holds: Callable[[], bool]) -> None:
    """Step until the condition holds: the server's own thread may be at the same step."""
    assert world.services is not None
    until = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < until
        world.services.pictures.step()


def listed(world: SmallWorld) -> int:
    assert world.services is not None
    content = world.services.pictures.shards._stored()[0]
    return sum(shard.count for shard in PictureList.model_validate_json(content).shards)


def browsers(world: SmallWorld, *, reads: bool) -> dict[str, Any]:
    given = {
        "privacy": PrivacySettings(mode="none").model_dump(), "url": world.url, "key": "00" * 32, "seed": "1",
        "now": datetime.now(UTC).timestamp() * 1_000, "more": False, "reads": reads, "stalled": False,
    }  # fmt: skip
    (answer,) = ask_node([("feed_started", given)])
    return dict(answer)


@pytest.mark.node
def test_pictures_reach_both_devices_only_through_the_backend(world: SmallWorld, publisher: RecordingWebServer) -> None:
    services = world.services
    assert services is not None
    feeds, pictures, url = services.feeds, services.pictures, publisher.url + "feed"
    feeds._allowed = networks([f"{HOST}/32"])
    pictures._rules = type(pictures._rules)(4_000_000, timedelta(), services.pool.lifetime)
    pictures._fetcher._allowed = feeds._allowed
    feeds.followed.add(url, datetime.now(UTC))
    feeds.step()
    pictures.step()
    assert [path for _, path in publisher.asked if path in FILES] == [], "nobody has allowed them"

    feeds.followed.allow_pictures(url, True)
    step_until(world, lambda: listed(world) == len(FILES) - 1)
    asked = sorted(path for _, path in publisher.asked if path in FILES)
    assert asked == sorted(FILES)
    ids = {row.title: row.id for row in services.pool.live(datetime.now(UTC)) if row.title in STORIES}

    device = world.device("reads-pictures", privacy=PrivacySettings(mode="none"))
    device.sync()
    mine = device.parts.stores.pictures
    kept = {title: mine.content(ids[title]) for title in STORIES}
    assert kept.pop("A drawing of boats") is None, "SVG is no picture here"
    for content in kept.values():
        assert content is not None
        with Image.open(BytesIO(content)) as picture:
            assert (picture.format, picture.size) == ("WEBP", (480, 300))
    idle, reading = browsers(world, reads=False), browsers(world, reads=True)
    assert sorted(idle["sent"]) == sorted(reading["sent"])
    assert ["GET", "/v1/pictures"] in idle["sent"]
    for found in (idle, reading):
        theirs = {news_id: base64.urlsafe_b64decode(content) for news_id, content in found["pictured"]}
        assert theirs == {ids[title]: content for title, content in kept.items()}
    assert sorted(path for _, path in publisher.asked if path in FILES) == asked, "no device asked the publisher"

    services.pool.take_down(ids[STORIES[0]])
    step_until(world, lambda: listed(world) == len(FILES) - 2)
    device.sync()
    assert mine.content(ids[STORIES[0]]) is None
    feeds.followed.allow_pictures(url, False)
    step_until(world, lambda: listed(world) == 0)
    device.sync()
    assert [mine.content(news_id) for news_id in ids.values()] == [None] * len(ids)
    assert browsers(world, reads=False)["pictured"] == []
