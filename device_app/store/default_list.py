"""The list that every device gets, and which vector shards were pulled: the same for everybody."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import RowCache, from_us, if_readable, to_us


@dataclass(frozen=True)
class StoredDefaultList:
    """Ids of the default list in its order; cards and vectors are in the store of news."""

    etag: str | None
    release: str
    encoder: str
    news_ids: tuple[str, ...]
    kept_at: datetime


class DefaultListStore:
    """The last default list."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._current = RowCache(database, self._read)

    def current(self) -> StoredDefaultList | None:
        """The list, or None before the first sync."""
        return self._current.get()

    def keep(self, *, etag: str | None, release: str, encoder: str, news_ids: Sequence[str], at: datetime) -> None:
        """Replace the list."""
        with self._database.transaction():
            self._database.write(
                """INSERT OR REPLACE INTO front (only, etag, release, encoder, news_ids, kept_at)
                   VALUES (1, ?, ?, ?, ?, ?)""",
                (etag, release, encoder, json.dumps(list(news_ids)), to_us(at)),
            )
            self._current.forget()

    def _read(self) -> StoredDefaultList | None:
        row = self._database.row("SELECT etag, release, encoder, news_ids, kept_at FROM front")
        ids = if_readable("the default list", lambda: tuple(json.loads(row[3]))) if row else None
        return StoredDefaultList(row[0], row[1], row[2], ids, from_us(row[4])) if row and ids is not None else None


class PulledShards:
    """Which shards of news vectors were pulled under each encoder, so that a cut-off pull goes on where it was."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pulled(self, encoder: str) -> dict[str, str]:
        """Hash by shard name."""
        return dict(self._database.rows("SELECT name, sha256 FROM shard WHERE encoder = ?", (encoder,)))

    def add(self, encoder: str, name: str, digest: str) -> None:
        """A shard was pulled whole."""
        with self._database.transaction():
            self._database.write(
                "INSERT OR REPLACE INTO shard (encoder, name, sha256) VALUES (?, ?, ?)", (encoder, name, digest)
            )

    def encoder(self) -> str | None:
        """The encoder all vectors were completed under last; None on a device that never met one."""
        found = self._database.row("SELECT encoder FROM encoder")
        return found[0] if found else None

    def generation(self, encoder: str) -> str | None:
        """A name of this encoder's vectors as they are on this device; None while they are not complete.

        An encoder that this device has left and come back to gives another name: its vectors came anew.
        """
        found = self._database.row("SELECT generation FROM encoder WHERE encoder = ?", (encoder,))
        return None if found is None else f"{encoder}/{found[0]}"

    def set_complete(self, encoder: str, at: datetime) -> None:
        """All shards of this encoder were pulled, or none was needed. A later return to another starts anew."""
        with self._database.transaction():
            before = self._database.number("SELECT coalesce(max(generation) + 1, 0) FROM encoder")
            self._database.write("DELETE FROM encoder")
            self._database.write(
                "INSERT INTO encoder (encoder, complete_at, generation) VALUES (?, ?, ?)", (encoder, to_us(at), before)
            )
            self._database.write("DELETE FROM shard")
