"""Opening a story: the click, and the text that was fetched before it."""

from __future__ import annotations

import json
from threading import Event, Thread

import pytest

from device_app.errors import BackendUnreachable, NewsNotHere
from tests.doubles.backend import FakeBackend
from tests.doubles.journey import Make
from tests.doubles.kills import Killed


def test_an_unknown_story_leaves_no_click(make: Make) -> None:
    device = make()
    device.feed(refresh=True)
    with pytest.raises(NewsNotHere):
        device.open("nowhere")
    assert device.status().clicks == 0


def test_the_same_story_opened_twice_from_one_feed_is_one_click(make: Make) -> None:
    device = make()
    feed = device.feed(refresh=True)
    news_id = feed.items[0].card.id
    for _ in range(3):
        article = device.open(news_id, feed.feed_id)
    assert device.status().clicks == 1
    assert article.reason == feed.items[0].reason
    assert 1 <= len(article.related) <= 4
    assert news_id not in {card.id for card in article.related}


def test_a_click_survives_a_kill_and_a_feed_is_recorded_before_it_is_seen(
    make: Make, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make()
    feed = device.feed(refresh=True)

    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(device.parts.serving, "item", kill)
    with pytest.raises(Killed):
        device.open(feed.items[2].card.id, feed.feed_id)
    again = make()
    assert [entry.news_id for entry in again.history().entries] == [feed.items[2].card.id]
    assert again.feed().items == feed.items

    monkeypatch.setattr(again.parts.stores.feeds, "save", kill)
    with pytest.raises(Killed):
        again.feed(refresh=True)
    last = make()
    assert last.feed().feed_id == feed.feed_id
    served = last.parts.stores.database.rows("SELECT DISTINCT feed_id FROM impression")
    assert served == [(feed.feed_id,)], "neither the feed nor that it was served"


def test_texts_are_fetched_for_whole_lists_and_opening_waits_for_them(make: Make, backend: FakeBackend) -> None:
    device = make()
    feed = device.feed(refresh=True)
    assert device.open(feed.items[0].card.id, feed.feed_id).paragraphs == ()
    stop = Event()
    reader = Thread(target=device.parts.bodies.attend, args=(stop, 0.05, device.prefetch_step))
    reader.start()
    try:
        article = device.open(feed.items[1].card.id, feed.feed_id)
    finally:
        stop.set()
        reader.join()
    assert len(article.paragraphs) == 2
    asked = [body for _, path, body in backend.requests if path == "/v1/news/bodies"]
    default_list = device.parts.stores.default_list.current()
    assert default_list is not None
    assert [set(json.loads(body)["ids"]) for body in asked] == [set(default_list.news_ids)]


def test_a_failed_fetch_of_texts_is_tried_again_whole(make: Make, backend: FakeBackend) -> None:
    device = make()
    device.feed(refresh=True)
    backend.down = True
    with pytest.raises(BackendUnreachable):
        device.prefetch_step()
    backend.down = False
    assert device.prefetch_step()
    assert not device.prefetch_step()
    asked = [body for _, path, body in backend.requests if path == "/v1/news/bodies"]
    assert len(asked) == 2
    assert asked[0] == asked[1]
