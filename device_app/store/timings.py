"""Stage times of the last requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from device_app.store.database import Database
from device_app.store.rows import from_us, if_readable, to_us

TIMINGS_KEPT = 1_000
Listener = Callable[[str, Mapping[str, float], Mapping[str, float]], None]


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
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Have each request told from now on: its kind, and milliseconds by stage of the device and of the server."""
        self._listeners.append(listener)

    def record(self, kind: str, device_ms: Mapping[str, float], server_ms: Mapping[str, float], at: datetime) -> None:
        """Keep one request's times; the oldest beyond a thousand go."""
        with self._database.quick_transaction():
            kept = self._database.write(
                "INSERT INTO timing (at, kind, device_ms, server_ms) VALUES (?, ?, ?, ?) RETURNING id",
                (to_us(at), kind, json.dumps(dict(device_ms)), json.dumps(dict(server_ms))),
            ).fetchone()
            self._database.write("DELETE FROM timing WHERE id <= ?", (kept[0] - TIMINGS_KEPT,))
        for listener in self._listeners:
            listener(kind, device_ms, server_ms)

    def last(self, n: int = 200) -> list[Timing]:
        """The newest n, newest first."""
        found = self._database.rows("SELECT at, kind, device_ms, server_ms FROM timing ORDER BY id DESC LIMIT ?", (n,))
        timings = (
            if_readable("a timing", lambda row=row: Timing(from_us(row[0]), row[1], *map(json.loads, row[2:])))  # type: ignore[misc]
            for row in found
        )
        return [timing for timing in timings if timing is not None]
