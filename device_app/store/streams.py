"""Lists of articles for reader apps: by feeds, read state and time, in pages."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from device_app.store.articles import Place
from device_app.store.database import Database
from device_app.store.rows import to_us

_WIDE = "SELECT value FROM json_each(?)"
_SAVED = "id IN (SELECT news_id FROM reaction WHERE kind = 'save')"


@dataclass(frozen=True)
class Stream:
    """Which articles a list contains.

    publishers: of these only; None: of all. read, saved: only those that are, or only those that aren't; None: both.
    since, before: published from this time on, and before this one.
    """

    publishers: Collection[str] | None = None
    read: bool | None = None
    saved: bool | None = None
    since: datetime | None = None
    before: datetime | None = None

    def where(self) -> tuple[list[str], list[object]]:
        """Return SQL conditions on `article`, and their values. Mute rules hide only what isn't saved."""
        tests = [] if self.saved else ["hidden_by IS NULL"]
        values: list[object] = []
        if self.publishers is not None:
            tests.append(f"publisher IN ({_WIDE})")
            values.append(json.dumps(sorted(self.publishers)))
        if self.read is not None:
            tests.append(f"is_read = {int(self.read)}")
        if self.saved is not None:
            tests.append(_SAVED if self.saved else f"NOT {_SAVED}")
        for moment, order in ((self.since, ">="), (self.before, "<")):
            if moment is not None:
                tests.append(f"published_at {order} ?")
                values.append(to_us(moment))
        return tests, values


class Streams:
    """Lists articles in order of time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, stream: Stream, limit: int, after: Place | None = None, *, oldest_first: bool = False
    ) -> list[Place]:
        """Return a page of a stream, newest first unless asked otherwise; after: the last place of the page before."""
        tests, values = stream.where()
        order, follows = ("ASC", ">") if oldest_first else ("DESC", "<")
        if after is not None:
            tests.append(f"(published_at, id) {follows} (?, ?)")
            values += after
        found = self._database.rows(
            f"SELECT published_at, id FROM article WHERE {' AND '.join(['1', *tests])} "
            f"ORDER BY published_at {order}, id {order} LIMIT ?",
            (*values, limit),
        )
        return [Place(*row) for row in found]

    def ids(self) -> Sequence[str]:
        """Return the ids of all articles."""
        return [row[0] for row in self._database.rows("SELECT id FROM article WHERE hidden_by IS NULL")]

    def read_among(self, news_ids: Collection[str]) -> frozenset[str]:
        """Return those of these articles that are read."""
        found = self._database.rows(
            f"SELECT id FROM article WHERE is_read = 1 AND id IN ({_WIDE})", (json.dumps(list(news_ids)),)
        )
        return frozenset(row[0] for row in found)

    def newest_by_publisher(self) -> dict[str, int]:
        """Return when the newest unread article of each publisher was published, in microseconds."""
        found = self._database.rows(
            """SELECT publisher, max(published_at) FROM article
               WHERE is_read = 0 AND hidden_by IS NULL GROUP BY publisher"""
        )
        return dict(found)
