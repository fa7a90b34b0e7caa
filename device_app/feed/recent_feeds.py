"""Feeds stored on disk, saved whole before they are shown.

They are read back unchanged until a new one is made.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from device_app.errors import BackendUnreachable, DeviceError
from device_app.feed.candidates import Candidates
from device_app.feed.item import Feed, Reason
from device_app.store.feeds import StoredFeed
from device_app.stores import DeviceStores
from protocol.server_timing import Stopwatch
from protocol.text_catalogue import TextCatalogue

_FEED = TypeAdapter(Feed)
_log = logging.getLogger(__name__)
NOTICES = TextCatalogue("device_app.feed", "notices.toml")


class RecentFeeds:
    """Stores the last hundred feeds of this device."""

    def __init__(self, stores: DeviceStores, clock: Callable[[], datetime], own_feeds: bool) -> None:
        self._stores, self._clock, self._own_feeds = stores, clock, own_feeds

    def save(self, feed: Feed, shown: Candidates, popularity: NDArray[np.float64], watch: Stopwatch) -> Feed:
        """Store the feed, its articles and their impressions in one transaction; return the feed.

        shown: the feed's cards with their vectors, in its order. popularity [n]: the popularity known of each. The time
        this takes is recorded as stage 'store'.
        """
        with watch.stage("store"), self._stores.database.quick_transaction():
            self._stores.news.put(shown.cards, shown.vectors, shown.encoder, feed.made_at)
            ids = [card.id for card in shown.cards]
            self._stores.impressions.serve(feed.feed_id, ids, feed.made_at, popularity.tolist())
            self._stores.feeds.save(StoredFeed(feed.feed_id, feed.made_at, _FEED.dump_json(feed).decode()))
        self._stores.timings.record("feed", watch.stages_ms, feed.server_ms, feed.made_at)
        whole = replace(feed, device_ms=dict(watch.stages_ms))
        # The time that storing took is known only now; save it too, so that the page is the same after a restart.
        self._stores.feeds.rewrite(StoredFeed(feed.feed_id, feed.made_at, _FEED.dump_json(whole).decode()))
        return whole

    def grow(self, feed: Feed, added: Candidates, popularity: NDArray[np.float64], at: datetime) -> Feed:
        """Store a feed with items added at its end, like `save`.

        Does nothing if the feed is no longer stored.
        """
        if self._stores.feeds.get(feed.feed_id) is None:
            return feed
        with self._stores.database.quick_transaction():
            self._stores.news.put(added.cards, added.vectors, added.encoder, at)
            ids = [card.id for card in added.cards]
            first = len(feed.items) - len(ids)
            self._stores.impressions.serve(feed.feed_id, ids, at, popularity.tolist(), first=first)
            self._stores.feeds.rewrite(StoredFeed(feed.feed_id, feed.made_at, _FEED.dump_json(feed).decode()))
        return feed

    def last(self) -> Feed | None:
        """Return the newest stored feed, or None."""
        return _read(self._stores.feeds.last())

    def feed(self, feed_id: str) -> Feed | None:
        return _read(self._stores.feeds.get(feed_id))

    def beside(self, feed_id: str) -> tuple[str | None, str | None]:
        """Return the ids of the feeds made directly before and after a stored one."""
        return self._stores.feeds.beside(feed_id)

    def forget_clicks(self, news_ids: Collection[str]) -> None:
        """Remove clicks that the reader deleted from the reasons of stored feeds.

        Stories keep their places. Call it in the same transaction as the deletion, so that no older feed shows what the
        reader deleted.
        """
        deleted_ids = set(news_ids)
        with self._stores.database.transaction():
            for kept in self._stores.feeds.naming(deleted_ids):
                feed = _read(kept)
                if feed is None:
                    self._stores.feeds.drop(kept.feed_id)
                    continue
                items = tuple(replace(item, reason=_without(item.reason, deleted_ids)) for item in feed.items)
                if items != feed.items:
                    content = _FEED.dump_json(replace(feed, items=items)).decode()
                    self._stores.feeds.rewrite(replace(kept, content=content))

    def offline(self, trouble: DeviceError) -> Feed:
        """Return the last feed marked 'offline', or an empty feed if there is none."""
        last, problem = self.last(), str(trouble)
        if isinstance(trouble, BackendUnreachable):
            problem = NOTICES("own_unreachable") if self._own_feeds else NOTICES("unreachable")
        if last is None:
            return Feed("", self._clock(), None, (), "offline", NOTICES("first_offline", trouble=problem))
        made_at = f"{last.made_at.astimezone():%-d %B, %H:%M}"
        return replace(last, mode="offline", notice=NOTICES("last_feed", trouble=problem, made=made_at))


def _without(reason: Reason, deleted_ids: set[str]) -> Reason:
    return Reason("editors", NOTICES("deleted")) if any(card.id in deleted_ids for card in reason.clicks) else reason


def _read(kept: StoredFeed | None) -> Feed | None:
    """Return the feed, or None if none is stored or it is unreadable.

    For an unreadable feed a new one is made, which is better than a page that fails at every visit.
    """
    try:
        return None if kept is None else _FEED.validate_json(kept.content)
    except ValidationError as broken:
        assert kept is not None
        _log.warning("The kept feed %s can't be read and counts as not kept: %s", kept.feed_id, broken.title)
        return None
