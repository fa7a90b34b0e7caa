"""Feeds on the disk: saved with what they show before anybody sees them, and read back when the backend is down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from device_app.errors import DeviceError
from device_app.feed.candidates import Candidates
from device_app.feed.item import Feed, FeedItem
from device_app.store.database import Database
from device_app.store.feeds import FeedStore, KeptFeed
from device_app.store.impressions import ImpressionStore
from device_app.store.news import NewsStore
from device_app.store.timings import TimingStore
from device_app.wire.http import Stopwatch

_FEED = TypeAdapter(Feed)


class KeptFeeds:
    """The last hundred feeds of this device."""

    def __init__(
        self,
        database: Database,
        feeds: FeedStore,
        impressions: ImpressionStore,
        store: NewsStore,
        timings: TimingStore,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._feeds = feeds
        self._impressions = impressions
        self._store = store
        self._timings = timings
        self._clock = clock

    def save(self, feed: Feed, shown: Candidates, popularity: NDArray[np.float64], watch: Stopwatch) -> Feed:
        """Shelve what it shows, record the impression and keep the feed, all or nothing; then return it.

        shown are the feed's cards with their vectors, in its order, and popularity [n] what was known of them. The time
        this takes counts as 'store'.
        """
        with watch.stage("store"), self._database.quick_transaction():
            self._store.put(shown.cards, shown.vectors, shown.encoder, feed.made_at)
            ids = [card.id for card in shown.cards]
            self._impressions.record(feed.feed_id, ids, feed.made_at, popularity.tolist())
            self._feeds.save(KeptFeed(feed.feed_id, feed.made_at, _FEED.dump_json(feed).decode()))
        self._timings.record("feed", watch.stages_ms, feed.server_ms, feed.made_at)
        return replace(feed, device_ms=dict(watch.stages_ms))

    def last(self) -> Feed | None:
        """The newest feed."""
        return _read(self._feeds.last())

    def item(self, feed_id: str, news_id: str) -> FeedItem | None:
        """An item of a kept feed."""
        feed = _read(self._feeds.get(feed_id))
        return next((item for item in feed.items if item.card.id == news_id), None) if feed else None

    def offline(self, trouble: DeviceError) -> Feed:
        """The last feed as it was, marked 'offline'; an empty one if there never was any."""
        last = self.last()
        if last is None:
            words = f"{trouble} This device has no feed to show yet; it tries again by itself."
            return Feed("", self._clock(), None, (), "offline", words)
        return replace(
            last,
            mode="offline",
            notice=f"{trouble} This is your last feed, of {last.made_at.astimezone():%-d %B, %H:%M}.",
        )


def _read(kept: KeptFeed | None) -> Feed | None:
    return None if kept is None else _FEED.validate_json(kept.content)
