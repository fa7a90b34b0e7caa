"""Popularity is downloaded and used on a whole device. Oracle: the fake backend's answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from device_app.composition import build_device
from device_app.device import Device
from device_app.errors import AnswerMalformed
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import DeviceSettings, PrivacySettings
from protocol.popularity import Popularity, etag_of_popularity
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.new_page import new_page
from tests.doubles.news import NOW

PATH = "/v1/releases/1/popularity"


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def device(tmp_path: Path, backend: FakeBackend) -> Iterator[Device]:
    device = build_device(
        DeviceSettings(data_dir=tmp_path, privacy=PrivacySettings(mode="none")),
        transport=backend.transport(),
        noise=SeededNoise("popularity"),
        chance=random.Random(5),
        clock=StillClock(NOW),
    )
    yield device
    device.close()


def popularity_of(
    backend: FakeBackend, lifts: dict[str, int], popular: tuple[str, ...] = (), release: str = ""
) -> Popularity:
    return Popularity(
        release=release or backend.releases[-1],
        rounds=3,
        devices=60,
        counted_at=NOW - timedelta(minutes=5),
        news=tuple(lifts),
        lifts=tuple(lifts.values()),
        popular=popular,
    )


def default_list(backend: FakeBackend, count: int) -> list[str]:
    newest = sorted(backend.pool.cards, key=lambda card: card.published_at, reverse=True)
    return [card.id for card in newest[:count]]


def test_backend_without_popularity_changes_nothing(device: Device, backend: FakeBackend) -> None:
    device.sync()
    assert device.reading.popular() == ()
    assert device.reading.popular_since() is None
    shown = [item.card.id for item in new_page(device).items]
    assert device.parts.stores.impressions.popularity_at(shown, NOW) == dict.fromkeys(shown, 0.0)


def test_popularity_is_requested_by_its_hash_and_kept_until_replaced(device: Device, backend: FakeBackend) -> None:
    ids = default_list(backend, 3)
    backend.popularity = popularity_of(backend, {ids[0]: 32}, tuple(ids))
    device.sync()
    kept = device.parts.stores.popularity.current()
    assert kept is not None
    assert kept.received == backend.popularity
    assert kept.values == {ids[0]: 0.5}, "a lift of 1, half of what lifts reach to"
    entry = next(row for row in device.parts.stores.byte_log.entries(1).rows if PATH.split("/")[-1] in row.url)
    device.sync()
    again = [row for row in device.parts.stores.byte_log.entries(1).rows if row.url.endswith("/popularity")]
    assert len(again) == 2
    assert etag_of_popularity(kept.content).encode() in again[0].head
    assert b"if-none-match" not in entry.head.lower()
    assert again[0].status == 304
    assert again[0].body == entry.body == b""
    backend.popularity = popularity_of(backend, {ids[1]: -32}, tuple(ids[1:]))
    device.sync()
    assert [card.id for card in device.reading.popular()] == ids[1:]


def test_popularity_of_another_release_is_refused_and_the_old_one_stays(device: Device, backend: FakeBackend) -> None:
    backend.popularity = popularity_of(backend, {default_list(backend, 1)[0]: 4})
    device.sync()
    backend.popularity = popularity_of(backend, {}, release="r77")
    with pytest.raises(AnswerMalformed, match="popularity"):
        device.sync()
    kept = device.parts.stores.popularity.current()
    assert kept is not None
    assert len(kept.values) == 1


def test_popular_list_follows_the_backend_without_hidden_stories(device: Device, backend: FakeBackend) -> None:
    ids = default_list(backend, 40)
    backend.popularity = popularity_of(backend, {}, (*reversed(ids), "not-here"))
    device.sync()
    cards = device.reading.popular()
    order = {news_id: place for place, news_id in enumerate(reversed(ids))}
    places = [order[card.id] for card in cards]
    assert places == sorted(places)
    stories = [card.story for card in cards if card.story]
    assert len(stories) == len(set(stories)), "one of each story"
    device.reading.open(cards[0].id)
    device.interests.stance("section", cards[1].section, "block")
    after = device.reading.popular()
    assert (cards[0] in after) == (cards[0].section != cards[1].section), "a story that was read stays where it stood"
    assert cards[1].section not in {card.section for card in after}


def test_feed_of_a_new_reader_starts_with_popular_stories(device: Device, backend: FakeBackend) -> None:
    lifted = default_list(backend, 400)[200:206]
    backend.popularity = popularity_of(backend, dict.fromkeys(lifted, 64), tuple(lifted))
    device.sync()
    plain_order = [item.card.id for item in new_page(device).items]
    assert set(plain_order) & set(lifted), "two days old, and in the feed because they are popular"
    personal = [item.card.id for item in new_page(device).in_slot("lead", "for_you")]
    assert set(personal[:3]) <= set(lifted)


def test_popularity_known_at_display_is_stored_with_the_feed(device: Device, backend: FakeBackend) -> None:
    ids = default_list(backend, 30)
    backend.popularity = popularity_of(backend, dict.fromkeys(ids, 16))
    device.sync()
    shown = [item.card.id for item in new_page(device).items]
    kept = device.parts.stores.impressions.popularity_at(shown, NOW)
    assert kept == {news_id: 0.25 if news_id in ids else 0.0 for news_id in shown}
    assert 0.25 in kept.values()
    backend.popularity = popularity_of(backend, dict.fromkeys(ids, -64))
    device.sync()
    assert device.parts.stores.impressions.popularity_at(shown, NOW) == kept


def test_share_of_fresh_articles_in_a_feed_is_measured_and_stored(device: Device, backend: FakeBackend) -> None:
    device.sync()
    feed = new_page(device)
    hours = device.settings.feed.fresh_hours
    fresh = [item for item in feed.items if item.card.published_at >= NOW - timedelta(hours=hours)]
    available = [card for card in backend.pool.cards if card.published_at >= NOW - timedelta(hours=hours)]
    assert (feed.fresh, feed.fresh_hours) == (len(fresh), hours)
    assert len(available) > feed.fresh >= device.settings.feed.fresh_slots > 0
    last = device.parts.serving.feed_context.kept.last()
    assert last is not None
    assert last.fresh == feed.fresh


def test_article_without_popularity_gets_a_zero_term(device: Device, backend: FakeBackend) -> None:
    ids = default_list(backend, 10)
    backend.popularity = popularity_of(backend, {ids[0]: 64, ids[1]: -64})
    device.sync()
    feed_context = device.parts.serving.feed_context
    known, _ = device.parts.serving.known_news()
    values = feed_context.popular.of(known)
    places = {card.id: row for row, card in enumerate(known.cards)}
    assert (values[places[ids[0]]], values[places[ids[1]]]) == (1.0, -1.0)
    assert np.count_nonzero(values) == 2
