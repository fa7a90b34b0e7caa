"""Stage times of the last requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import from_us, to_us

TIMINGS_KEPT = 1_000


@dataclass(frozen=True)
class Timing:
    """Milliseconds by stage of one request."""

    at: datetime
    kind: str
    device_ms: dict[str, float]
    server_ms: dict[str, float]


class TimingStore:
    """The last thousand requests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, kind: str, device_ms: Mapping[str, float], server_ms: Mapping[str, float], at: datetime) -> None:
        """Keep one request's times; the oldest beyond a thousand go."""
        with self._database.quick_transaction():
            kept = self._database.write(
                "INSERT INTO timing (at, kind, device_ms, server_ms) VALUES (?, ?, ?, ?) RETURNING id",
                (to_us(at), kind, json.dumps(dict(device_ms)), json.dumps(dict(server_ms))),
            ).fetchone()
            self._database.write("DELETE FROM timing WHERE id <= ?", (kept[0] - TIMINGS_KEPT,))

    def last(self, n: int = 200) -> list[Timing]:
        """The newest n, newest first."""
        found = self._database.rows("SELECT at, kind, device_ms, server_ms FROM timing ORDER BY id DESC LIMIT ?", (n,))
        return [Timing(from_us(at), kind, json.loads(mine), json.loads(theirs)) for at, kind, mine, theirs in found]
