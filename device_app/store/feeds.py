"""Built feeds: the current one survives a restart, and earlier ones can be reopened."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import from_us, to_us

FEEDS_KEPT = 100


@dataclass(frozen=True)
class StoredFeed:
    """A stored feed as JSON. The package `device_app.feed` defines its format."""

    feed_id: str
    made_at: datetime
    content: str


class FeedStore:
    """The last hundred feeds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, feed: StoredFeed) -> None:
        """Save a feed; one with the same id is replaced, the oldest beyond a hundred are deleted."""
        with self._database.quick_transaction():
            self._database.write(
                "INSERT OR REPLACE INTO feed (feed_id, made_at, content) VALUES (?, ?, ?)",
                (feed.feed_id, to_us(feed.made_at), feed.content),
            )
            self._database.write(
                """DELETE FROM feed WHERE feed_id NOT IN
                   (SELECT feed_id FROM feed ORDER BY made_at DESC, rowid DESC LIMIT ?)""",
                (FEEDS_KEPT,),
            )

    def last(self) -> StoredFeed | None:
        return _feed(
            self._database.row("SELECT feed_id, made_at, content FROM feed ORDER BY made_at DESC, rowid DESC LIMIT 1")
        )

    def get(self, feed_id: str) -> StoredFeed | None:
        return _feed(self._database.row("SELECT feed_id, made_at, content FROM feed WHERE feed_id = ?", (feed_id,)))

    def beside(self, feed_id: str) -> tuple[str | None, str | None]:
        """Return ids of the feeds before and after this one.

        None at either end, or if this one isn't stored.
        """
        found = self._database.row(
            """SELECT before, after FROM (
                 SELECT feed_id, lag(feed_id) OVER made AS before, lead(feed_id) OVER made AS after
                 FROM feed WINDOW made AS (ORDER BY made_at, rowid))
               WHERE feed_id = ?""",
            (feed_id,),
        )
        return (found[0], found[1]) if found else (None, None)

    def naming(self, news_ids: Iterable[str]) -> list[StoredFeed]:
        """Feeds whose JSON contains one of these ids."""
        found = self._database.rows(
            """SELECT feed_id, made_at, content FROM feed
               WHERE EXISTS (SELECT 1 FROM json_each(?) WHERE instr(content, json_quote(value)))""",
            (json.dumps(sorted(news_ids)),),
        )
        return [kept for row in found if (kept := _feed(row)) is not None]

    def rewrite(self, feed: StoredFeed) -> None:
        """Replace a stored feed's JSON; does nothing if it isn't stored."""
        with self._database.quick_transaction():
            self._database.write("UPDATE feed SET content = ? WHERE feed_id = ?", (feed.content, feed.feed_id))

    def drop(self, feed_id: str) -> None:
        with self._database.quick_transaction():
            self._database.write("DELETE FROM feed WHERE feed_id = ?", (feed_id,))


def _feed(row: tuple[str, int, str] | tuple[object, ...] | None) -> StoredFeed | None:
    return StoredFeed(str(row[0]), from_us(int(str(row[1]))), str(row[2])) if row else None
