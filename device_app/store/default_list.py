"""Store what is the same for every device: default list, pulled shards, popularity."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import RowCache, from_us, if_readable, to_us
from protocol.popularity import LIFT_REACH, LIFT_STEP, Popularity


@dataclass(frozen=True)
class StoredDefaultList:
    """Ids of the default list in its order; cards and vectors are in `NewsStore`."""

    etag: str | None
    release: str
    encoder: str
    news_ids: tuple[str, ...]
    kept_at: datetime


class DefaultListStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._current = RowCache(database, self._read)

    def current(self) -> StoredDefaultList | None:
        """Return the list, or None before the first sync."""
        return self._current.get()

    def keep(self, *, etag: str | None, release: str, encoder: str, news_ids: Sequence[str], at: datetime) -> None:
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
    """The shards of article vectors downloaded for each encoder, so that a download can resume."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pulled(self, encoder: str) -> dict[str, str]:
        """Return the hash of each pulled shard, by its name."""
        return dict(self._database.rows("SELECT name, sha256 FROM shard WHERE encoder = ?", (encoder,)))

    def add(self, encoder: str, name: str, digest: str) -> None:
        """Record that a shard was pulled completely."""
        with self._database.transaction():
            self._database.write(
                "INSERT OR REPLACE INTO shard (encoder, name, sha256) VALUES (?, ?, ?)", (encoder, name, digest)
            )

    def encoder(self) -> str | None:
        """Return the last encoder under which all vectors were complete.

        None if there never was one.
        """
        found = self._database.row("SELECT encoder FROM encoder")
        return found[0] if found else None

    def generation(self, encoder: str) -> str | None:
        """Return the name of this encoder's vectors as stored on this device.

        None while they are incomplete. If this device switched to another encoder and back, the name is a new one,
        since the vectors were downloaded again.
        """
        found = self._database.row("SELECT generation FROM encoder WHERE encoder = ?", (encoder,))
        return None if found is None else f"{encoder}/{found[0]}"

    def set_complete(self, encoder: str, at: datetime) -> None:
        """Record that all shards of this encoder were pulled, or none was needed.

        A later switch back to this encoder starts over.
        """
        with self._database.transaction():
            before = self._database.number("SELECT coalesce(max(generation) + 1, 0) FROM encoder")
            self._database.write("DELETE FROM encoder")
            self._database.write(
                "INSERT INTO encoder (encoder, complete_at, generation) VALUES (?, ?, ?)", (encoder, to_us(at), before)
            )
            self._database.write("DELETE FROM shard")


@dataclass(frozen=True)
class StoredPopularity:
    """content is the exact answer, from which its ETag is computed.

    Values are its lifts, from -1 to 1.
    """

    received: Popularity
    content: bytes
    kept_at: datetime
    values: Mapping[str, float]


class PopularityStore:
    """The last answer; read from the disk once, then kept in memory."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._current = RowCache(database, self._read)

    def current(self) -> StoredPopularity | None:
        """Return the answer in use; None before the first."""
        return self._current.get()

    def keep(self, content: bytes, at: datetime) -> None:
        """Use this answer from now on. It must have been checked."""
        with self._database.quick_transaction():
            self._database.write(
                "INSERT OR REPLACE INTO popularity (only, content, kept_at) VALUES (1, ?, ?)", (content, to_us(at))
            )
            self._current.forget()

    def _read(self) -> StoredPopularity | None:
        row = self._database.row("SELECT content, kept_at FROM popularity")
        if row is None:
            return None
        received = if_readable("what is popular", lambda: Popularity.model_validate_json(row[0]))
        if received is None:
            return None
        values = {
            news_id: steps * LIFT_STEP / LIFT_REACH
            for news_id, steps in zip(received.news, received.lifts, strict=True)
        }
        return StoredPopularity(received, row[0], from_us(row[1]), values)
