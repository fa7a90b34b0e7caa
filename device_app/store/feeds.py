"""Feeds as they were built, so that the last one serves without the backend and a reason can be looked up later."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import from_us, to_us

FEEDS_KEPT = 100


@dataclass(frozen=True)
class KeptFeed:
    """A feed's JSON; `feed` reads and writes it."""

    feed_id: str
    made_at: datetime
    content: str


class FeedStore:
    """The last hundred feeds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, feed: KeptFeed) -> None:
        """Keep a feed; a feed of the same id is replaced, the oldest beyond a hundred go."""
        with self._database.quick_transaction():
            self._database.write(
                "INSERT OR REPLACE INTO feed (feed_id, made_at, content) VALUES (?, ?, ?)",
                (feed.feed_id, to_us(feed.made_at), feed.content),
            )
            self._database.write(
                """DELETE FROM feed WHERE feed_id NOT IN
                   (SELECT feed_id FROM feed ORDER BY made_at DESC, feed_id DESC LIMIT ?)""",
                (FEEDS_KEPT,),
            )

    def last(self) -> KeptFeed | None:
        """The newest feed."""
        return _feed(
            self._database.row("SELECT feed_id, made_at, content FROM feed ORDER BY made_at DESC, feed_id DESC LIMIT 1")
        )

    def get(self, feed_id: str) -> KeptFeed | None:
        """One feed, if it's still kept."""
        return _feed(self._database.row("SELECT feed_id, made_at, content FROM feed WHERE feed_id = ?", (feed_id,)))


def _feed(row: tuple[str, int, str] | tuple[object, ...] | None) -> KeptFeed | None:
    return KeptFeed(str(row[0]), from_us(int(str(row[1]))), str(row[2])) if row else None
