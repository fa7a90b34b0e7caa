"""From a click to the next feed, over real HTTP.

Oracle for what is sent: the bytes as the server received them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from device_app.device import Device
from device_app.feed.item import Feed
from device_app.settings import PerformanceSettings
from protocol.news import BodiesRequest, NewsCard
from tests.doubles.new_page import new_page
from tests.doubles.small_world import Received, SmallWorld, fill_pool, hand_made_news

TOPIC = "rowing"
ALWAYS_ASKS = PerformanceSettings(default_list_limit=200, bodies_wait_sec=0.2)


def share(feed: Feed, topic: str) -> float:
    personal = feed.in_slot("lead", "for_you")
    return sum(item.card.topic == topic for item in personal) / len(personal)


def default_list_of(device: Device, topic: str) -> list[NewsCard]:
    found = {card.id: card for listed in device.reading.explore() for card in listed.cards if card.topic == topic}
    return list(found.values())


def fetch_texts(device: Device) -> None:
    while device.prefetch_step():
        pass


def returned_lists(requests: Sequence[Received]) -> list[tuple[str, ...]]:
    """Return the ids of every list of candidates that the server returned, in order."""
    lists = []
    for one in requests:
        if one.path in ("/v1/recall", "/v1/news/front") and one.status == 200:
            text = gzip.decompress(one.answer) if one.answer[:2] == b"\x1f\x8b" else one.answer
            lists.append(tuple(card["id"] for card in json.loads(text)["candidates"]))
    return lists


def test_clicks_on_a_topic_raise_its_share_without_appearing_in_requests(world: SmallWorld) -> None:
    device = world.device("clicker", performance=ALWAYS_ASKS)
    cold = new_page(device)
    assert cold.mode == "cold"
    assert len(cold.items) == 30
    fetch_texts(device)
    before = len(world.requests())

    clicked = [card.id for card in default_list_of(device, TOPIC)[:5]]
    assert len(clicked) == 5
    for news_id in clicked:
        article = device.reading.open(news_id, cold.feed_id)
        assert article.paragraphs == (f"First paragraph of {news_id}.", f"Second paragraph of {news_id}.")
    assert len(world.requests()) == before, "opening stories asks the server for nothing"

    warm = new_page(device)
    assert warm.mode == "personal"
    assert warm.recalled >= 400, "those of the answer, and of the copy of the pool"
    assert share(warm, TOPIC) >= share(cold, TOPIC) + 0.15
    assert any(item.reason.kind == "interest" and TOPIC in item.reason.words for item in warm.items)
    assert not {item.card.id for item in warm.items} & set(clicked)
    fetch_texts(device)
    device.library.react(warm.items[2].card.id, "like")
    device.interests.stance("topic", "opera", "block")
    after = new_page(device)
    assert all(item.card.topic != "opera" for item in after.items)
    device.reading.open(after.items[1].card.id, after.feed_id)
    device.sync()
    fetch_texts(device)
    clicked += [warm.items[2].card.id, after.items[1].card.id]

    requests = world.requests()
    lists = returned_lists(requests)
    whole_lists = 0
    for one in requests:
        secret_places = f"{one.path}?{one.query}\n".encode() + one.headers
        assert not any(news_id.encode() in secret_places for news_id in clicked), one.path
        if one.path == "/v1/news/bodies":
            ids = BodiesRequest.model_validate_json(one.body).ids
            assert ids in lists, "texts are asked for one whole list that the server itself gave, in its order"
            whole_lists += 1
        else:
            assert not any(news_id.encode() in one.body for news_id in clicked), one.path
    assert whole_lists >= 2
    assert sum(one.path == "/v1/recall" for one in requests) >= 2

    log = world.server_log()
    assert "POST /v1/recall 200" in log
    assert not any(news_id in log for news_id in clicked)


def test_byte_log_matches_what_the_server_received(world: SmallWorld) -> None:
    before = len(world.requests())
    device = world.device("auditor")
    device.reading.feed(refresh=True)
    for card in default_list_of(device, TOPIC)[:5]:
        device.reading.open(card.id)
    new_page(device)
    fetch_texts(device)
    received = world.requests()[before:]
    brief = list(device.parts.stores.byte_log.entries().rows)[::-1]
    assert len(brief) == len(received) >= 5
    for line, one in zip(brief, received, strict=True):
        entry = device.parts.stores.byte_log.entry(line.id)
        assert entry is not None
        target = one.path + (f"?{one.query}" if one.query else "")
        assert entry.head.split(b"\r\n")[0] == f"{one.method} {target} HTTP/1.1".encode()
        sent = sorted(part.lower() for part in entry.head.split(b"\r\n")[1:] if part)
        assert sent == sorted(part.lower() for part in one.headers.split(b"\n"))
        assert entry.body == one.body
        assert entry.status == one.status
        assert entry.words


def test_report_is_drawn_once_and_resent_identically_after_restarts(world: SmallWorld) -> None:
    device = world.device("refresher", performance=ALWAYS_ASKS)
    device.reading.feed(refresh=True)
    for card in default_list_of(device, TOPIC)[:5]:
        device.reading.open(card.id)
    before = len(world.requests())
    for _ in range(12):
        new_page(device)
    device.close()
    world.devices.remove(device)
    device = world.device("refresher", performance=ALWAYS_ASKS)
    for _ in range(3):
        new_page(device)
    reports = [one.body for one in world.requests()[before:] if one.path == "/v1/recall"]
    assert len(reports) == 15
    assert len(set(reports)) == 1
    budget = next(one for one in device.privacy.overview().budgets if one.channel == "reports")
    assert budget.spent_today == 4, "one code of sixteen, drawn once"
    device.reading.open(default_list_of(device, "tennis")[0].id)
    new_page(device)
    assert world.requests()[-1].body == reports[0], "one click is not enough for a new report"


def test_requests_with_reports_off_do_not_depend_on_reading(world: SmallWorld) -> None:
    device = world.device("silent")
    device.privacy.change(mode="none", training=False)
    device.sync()
    before = len(world.requests())
    for card in default_list_of(device, TOPIC)[:6]:
        device.reading.open(card.id)
    feed = new_page(device)
    fetch_texts(device)
    assert feed.mode == "front"
    assert share(feed, TOPIC) > 0.15, "ranked here all the same"
    assert {one.path for one in world.requests()[before:]} <= {"/v1/news/bodies"}
    for one in world.requests()[before:]:
        assert BodiesRequest.model_validate_json(one.body).ids in returned_lists(world.requests())


def test_device_takes_only_new_stories_of_the_default_list_and_their_texts(world: SmallWorld) -> None:
    assert world.services is not None
    device = world.device("minute")
    device.sync()
    fetch_texts(device)
    news = hand_made_news(datetime.now(UTC))[0]
    changes = {
        "id": "new-story",
        "title": "Lighthouse keeper finds a letter from Iceland",
        "published_at": datetime.now(UTC),
    }
    fill_pool(world.services.pool, [news.model_copy(update=changes)])
    world.services.updater.rebuild()
    before = len(world.requests())
    device.sync()
    fetch_texts(device)

    received = world.requests()[before:]
    (listed,) = [one for one in received if one.path == "/v1/news/front"]
    assert "&since=" in listed.query
    assert returned_lists([listed]) == [("new-story",)]
    texts = [BodiesRequest.model_validate_json(one.body).ids for one in received if one.path == "/v1/news/bodies"]
    assert texts == [("new-story",)]
    fresh = world.device("fresh")
    fresh.sync()
    lists = [each.parts.stores.default_list.current() for each in (device, fresh)]
    assert lists[0] is not None
    assert lists[1] is not None
    assert lists[0].news_ids == lists[1].news_ids
    assert "new-story" in lists[0].news_ids
    assert device.parts.stores.news.without_body(lists[0].news_ids) == []
