"""Opening a story records the click and shows the text that was fetched before."""

from __future__ import annotations

import json
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest

from device_app.errors import BackendUnreachable, NewsNotHere
from device_app.feed.candidates import Candidates
from device_app.feed.similarity import SimilarityRule, is_by_meaning
from tests.doubles.backend import FakeBackend
from tests.doubles.journey import Make
from tests.doubles.kills import Killed
from tests.doubles.new_page import new_page


def test_unknown_story_leaves_no_click(make: Make) -> None:
    device = make()
    new_page(device)
    with pytest.raises(NewsNotHere):
        device.reading.open("nowhere")
    assert device.status().clicks == 0


def test_story_opened_twice_from_one_feed_is_one_click(make: Make) -> None:
    device = make()
    feed = new_page(device)
    news_id = feed.items[0].card.id
    for _ in range(3):
        article = device.reading.open(news_id, feed.feed_id)
    assert device.status().clicks == 1
    assert article.reason == feed.items[0].reason
    assert 1 <= len(article.related) <= 4
    assert news_id not in {card.id for card in article.related}


def test_stories_that_share_only_a_name_are_not_related(make: Make, backend: FakeBackend) -> None:
    """Oracle: what the two have in common, and the cosine of their vectors."""
    cards, vectors = backend.pool.cards, backend.pool.vectors
    nearest = np.argsort(-(vectors @ vectors[0]))
    other = next(row for row in nearest if cards[row].topic != cards[0].topic)
    named = {row: cards[row].model_copy(update={"abstract": "Alessio Fantozzi was hurt."}) for row in (0, other)}
    backend.pool = replace(backend.pool, cards=tuple(named.get(row, card) for row, card in enumerate(cards)))
    backend.publish()
    device = make(default_list_limit=len(cards))
    device.sync()
    device.reading.feed(refresh=True)
    both = Candidates((named[other],), vectors[other : other + 1], "")
    (similar,) = SimilarityRule(both, None).of(named[0], vectors[0], both.cards, both.vectors)
    assert similar.tie == "name"
    assert is_by_meaning(similar, similar.cosine - 0.01)
    assert not is_by_meaning(similar, similar.cosine)
    device.interests.stance("topic", cards[0].topic, "block")  # else stories of the topic take the places
    related = device.reading.open(cards[0].id).related
    assert named[other].id not in {card.id for card in related}


def test_click_survives_a_kill_and_the_feed_is_recorded_first(
    make: Make, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make()
    feed = device.reading.feed(refresh=True)

    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(device.parts.serving, "item", kill)
    with pytest.raises(Killed):
        device.reading.open(feed.items[2].card.id, feed.feed_id)
    again = make()
    assert [entry.news_id for entry in again.library.history().entries] == [feed.items[2].card.id]
    assert again.reading.feed().items == feed.items

    monkeypatch.setattr(again.parts.stores.feeds, "save", kill)
    with pytest.raises(Killed):
        again.reading.feed(refresh=True)
    last = make()
    assert last.reading.feed().feed_id == feed.feed_id
    served = last.parts.stores.database.rows("SELECT DISTINCT feed_id FROM impression")
    assert served == [(feed.feed_id,)], "neither the feed nor that it was served"


def test_texts_are_fetched_for_whole_lists_and_opening_a_story_waits_for_them(make: Make, backend: FakeBackend) -> None:
    device = make()
    feed = device.reading.feed(refresh=True)
    assert device.reading.open(feed.items[0].card.id, feed.feed_id).paragraphs == ()
    with device.parts.bodies.attended():
        fetching = Thread(target=device.prefetch_step)
        fetching.start()
        article = device.reading.open(feed.items[1].card.id, feed.feed_id)
        fetching.join()
    assert len(article.paragraphs) == 2
    asked = [body for _, path, body in backend.requests if path == "/v1/news/bodies"]
    default_list = device.parts.stores.default_list.current()
    assert default_list is not None
    assert [set(json.loads(body)["ids"]) for body in asked] == [set(default_list.news_ids)]


def test_failed_text_fetch_is_repeated_in_full(make: Make, backend: FakeBackend) -> None:
    device = make()
    device.reading.feed(refresh=True)
    backend.down = True
    with pytest.raises(BackendUnreachable):
        device.prefetch_step()
    backend.down = False
    assert device.prefetch_step()
    assert not device.prefetch_step()
    asked = [body for _, path, body in backend.requests if path == "/v1/news/bodies"]
    assert len(asked) == 2
    assert asked[0] == asked[1]
