"""What of a feed its reader has looked at. It sinks in later feeds, and nothing else does.

With script, the page says which cards had half of them in sight for a second. Without, a story counts that was opened,
and with it what was passed on the way: the cards above it in its column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock

from device_app.feed.item import Feed, PageSlot
from device_app.store.impressions import ImpressionStore

MAIN_COLUMN: tuple[PageSlot, ...] = ("lead", "for_you", "more")
"""The other slots stand beside it on a wide page, where reading down one column passes nothing of the other."""
WATCHED_KEPT = 100


class Viewing:
    """Notes looks at the stories of feeds; safe for several threads."""

    def __init__(
        self,
        impressions: ImpressionStore,
        feed: Callable[[str], Feed | None],
        clock: Callable[[], datetime],
    ) -> None:
        """feed: a feed by its id, None if it isn't kept."""
        self._impressions, self._feed, self._clock = impressions, feed, clock
        self._watched: dict[str, None] = {}
        self._lock = Lock()

    def report(self, feed_id: str, news_ids: Sequence[str]) -> int:
        """A page's script has seen these looked at (perhaps none, when it begins); returns how many that is news of."""
        if not self._impressions.served(feed_id):  # nobody's, or one that was erased while its page stood open
            return 0
        with self._lock:
            self._watched[feed_id] = None
            for oldest in list(self._watched)[:-WATCHED_KEPT]:
                del self._watched[oldest]
        return self._impressions.view(feed_id, news_ids, self._clock()) if news_ids else 0

    def forget(self) -> None:
        """Drop which pages' scripts were heard of: the reader erases what there is."""
        with self._lock:
            self._watched.clear()

    def opened(self, feed_id: str, news_id: str) -> None:
        """A story was opened from a feed: it was looked at; so was what stands above it, where no script watches."""
        with self._lock:
            watched = feed_id in self._watched
        passed = () if watched else self._above(feed_id, news_id)
        self._impressions.view(feed_id, (*passed, news_id), self._clock())

    def _above(self, feed_id: str, news_id: str) -> tuple[str, ...]:
        feed = self._feed(feed_id)
        items = feed.items if feed else ()
        at = next((item for item in items if item.card.id == news_id), None)
        if at is None:
            return ()
        in_main = at.slot in MAIN_COLUMN
        column = (item for item in items if (item.slot in MAIN_COLUMN) == in_main)
        return tuple(item.card.id for item in column if item.position < at.position)
