"""Which stories the reader has read: opened here, marked as read, or read in an app.

A mark is not a click: the ranking learns nothing from it, and it never leaves the device.
"""

import json
from collections.abc import Collection, Iterable
from datetime import datetime

from device_app.store.articles import Place, Selection
from device_app.store.database import Database
from device_app.store.rows import to_us

OPENED = 0
"""The batch of stories that were opened. Marks have higher numbers."""


class ReadMarks:
    """The ids of read stories, each with the time at which it was first read.

    `news_id in marks` looks one story up. A trigger marks a clicked story as read, and unmarks it when its clicks are
    deleted.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def __contains__(self, news_id: object) -> bool:
        return self._database.row("SELECT 1 FROM read_story WHERE news_id = ?", (news_id,)) is not None

    def ids(self) -> frozenset[str]:
        return frozenset(row[0] for row in self._database.rows("SELECT news_id FROM read_story"))

    def events(self) -> frozenset[str]:
        """Return the events of all read stories that are here, and the ids of articles that list one of them."""
        found = self._database.rows("SELECT story, lead FROM read_story JOIN article ON id = news_id")
        return frozenset(name for row in found for name in row if name)

    def count_since(self, moment: datetime) -> int:
        """Return how many stories were first read after this time."""
        return self._database.number("SELECT count(*) FROM read_story WHERE at > ?", (to_us(moment),))

    def opened(self, news_id: str, at: datetime) -> None:
        """Mark a story as read because it was opened, perhaps again.

        Its click is recorded elsewhere.
        """
        with self._database.transaction():
            self._database.write(
                "INSERT INTO read_story (news_id, at, batch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (news_id, to_us(at), OPENED),
            )

    def mark(self, news_ids: Collection[str], at: datetime) -> int:
        """Mark stories as read and return the mark's number, for `undo`.

        0 if all were already read.
        """
        with self._database.transaction():
            found = self._database.rows(
                """SELECT DISTINCT value FROM json_each(?)
                   WHERE NOT EXISTS (SELECT 1 FROM read_story WHERE news_id = value)""",
                (json.dumps(list(news_ids)),),
            )
            return self._mark([row[0] for row in found], at)

    def mark_all(
        self,
        selection: Selection,
        at: datetime,
        *,
        upto: Place | None = None,
        above: Place | None = None,
        below: Place | None = None,
    ) -> int:
        """Mark the unread stories of a selection as read.

        Return the number of this mark, or 0 if there were none. upto: the newest to mark, so that stories which arrived
        above it since the reader saw the list stay unread. above, below: only those above or below this place.
        """
        tests, values = selection.where()
        for place, order in ((upto, "<="), (above, ">"), (below, "<")):
            if place is not None:
                tests.append(f"(published_at, id) {order} (?, ?)")
                values += place
        with self._database.transaction():
            found = self._database.rows(f"SELECT id FROM article WHERE {' AND '.join(['is_read = 0', *tests])}", values)
            return self._mark([row[0] for row in found], at)

    def unmark(self, news_ids: Collection[str]) -> None:
        """Mark stories as unread; clicks on them stay in the history."""
        with self._database.transaction():
            self._database.write_many("DELETE FROM read_story WHERE news_id = ?", [(one,) for one in news_ids])

    def undo(self, batch: int) -> int:
        """Mark the stories of a mark as unread again; return how many."""
        if batch == OPENED:
            return 0
        with self._database.transaction():
            found = self._database.rows("SELECT news_id FROM read_story WHERE batch = ?", (batch,))
            self.unmark([row[0] for row in found])
            return len(found)

    def size(self, batch: int) -> int:
        """Return how many stories of a mark still count as read because of it."""
        if batch == OPENED:
            return 0
        return self._database.number("SELECT count(*) FROM read_story WHERE batch = ?", (batch,))

    def take_over(self, rows: Iterable[tuple[str, int, int]]) -> None:
        """Add (article id, time in microseconds, batch) of another device.

        Call it inside a transaction. All its marks get one new number here, since their numbers may already be in use.
        """
        batch = 1 + self._database.number("SELECT max(batch) FROM read_story")
        self._database.write_many(
            "INSERT INTO read_story (news_id, at, batch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(news_id, at, batch if theirs else OPENED) for news_id, at, theirs in rows],
        )

    def prune(self, before: datetime) -> int:
        """Delete marks from before a time on stories that are no longer here; return how many."""
        with self._database.transaction():
            return self._database.write(
                """DELETE FROM read_story WHERE at < ? AND NOT EXISTS (SELECT 1 FROM article WHERE id = news_id)
                   AND NOT EXISTS (SELECT 1 FROM click WHERE click.news_id = read_story.news_id)""",
                (to_us(before),),
            ).rowcount

    def _mark(self, news_ids: list[str], at: datetime) -> int:
        if not news_ids:
            return 0
        batch = 1 + self._database.number("SELECT max(batch) FROM read_story")
        self._database.write_many(
            "INSERT INTO read_story (news_id, at, batch) VALUES (?, ?, ?)",
            [(one, to_us(at), batch) for one in news_ids],
        )
        return batch
