"""Searches and stances of another device's export, on their way into the second view's store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from device_app.store.database import Database
from device_app.store.late_database import LateDatabase
from device_app.store.opinions import FORGET_UNFOLLOWED
from device_app.store.preferences import MOVED_SEARCHES, Preferences


class MovedSearches:
    """Two files can't be written in one transaction, so that the first one's says what is still to be written into the
    second: the preference MOVED_SEARCHES, rows by table, each by column.

    Formal guarantees: what was put in the transaction of `database` is in `searches` once `finish` has run, whatever
    ended the process in between; what was rolled back never comes there; nothing of it stays in `database` then, and
    nothing of it is in copies and exports of `database` before.
    """

    def __init__(self, database: Database, searches: LateDatabase) -> None:
        self._database, self._searches = database, searches
        self._preferences = Preferences(database)

    def put(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Keep rows of `stance`, `search` and `opened`, inside the transaction that takes the rest over, and after a
        `finish`: those that still waited would be lost."""
        if any(rows.values()):
            self._preferences.set(MOVED_SEARCHES, rows)

    def finish(self) -> None:
        """Write what waits, if anything does; of two words on one thing the later one stands. Called by whoever has put
        it, and when a device opens."""
        rows = self._preferences.get(MOVED_SEARCHES)
        if rows is None:
            return
        with self._searches.transaction():
            for one in rows["stance"]:
                self._searches.write(
                    """INSERT INTO stance (kind, name, stance, at) VALUES (?, ?, ?, ?) ON CONFLICT (kind, name)
                       DO UPDATE SET stance = excluded.stance, at = excluded.at WHERE excluded.at > stance.at""",
                    (one["kind"], one["name"], one["stance"], one["at"]),
                )
            for one in rows["search"]:
                self._searches.write(
                    """INSERT INTO search (words, saved_at, looked_at) VALUES (?, ?, ?) ON CONFLICT (words)
                       DO UPDATE SET looked_at = max(search.looked_at, excluded.looked_at)""",
                    (one["words"], one["saved_at"], one["looked_at"]),
                )
            for one in rows["opened"]:
                self._searches.write(
                    "INSERT INTO opened (news_id, at) VALUES (?, ?) ON CONFLICT DO NOTHING", (one["news_id"], one["at"])
                )
            self._searches.write(FORGET_UNFOLLOWED)
        self._preferences.set(MOVED_SEARCHES, None)
        self._database.fold()
