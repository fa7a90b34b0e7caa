"""What is popular, as the backend tells everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import RowCache, from_us, if_readable, to_us
from device_app.wire.popularity import LIFT_REACH, LIFT_STEP, Popularity


@dataclass(frozen=True)
class StoredPopularity:
    """content is the answer to the byte, from which its ETag is computed; values are its lifts, from -1 to 1."""

    told: Popularity
    content: bytes
    kept_at: datetime
    values: Mapping[str, float]


class PopularityStore:
    """The last answer; read once, then from memory."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._current = RowCache(database, self._read)

    def current(self) -> StoredPopularity | None:
        """The answer in use; None before the first."""
        return self._current.get()

    def keep(self, content: bytes, at: datetime) -> None:
        """Use this answer, checked before, from now on."""
        with self._database.quick_transaction():
            self._database.write(
                "INSERT OR REPLACE INTO popularity (only, content, kept_at) VALUES (1, ?, ?)", (content, to_us(at))
            )
            self._current.forget()

    def _read(self) -> StoredPopularity | None:
        row = self._database.row("SELECT content, kept_at FROM popularity")
        if row is None:
            return None
        told = if_readable("what is popular", lambda: Popularity.model_validate_json(row[0]))
        if told is None:
            return None
        values = {news_id: steps * LIFT_STEP / LIFT_REACH for news_id, steps in zip(told.news, told.lifts, strict=True)}
        return StoredPopularity(told, row[0], from_us(row[1]), values)
