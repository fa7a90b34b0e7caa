"""The log of every request that left this device, byte for byte, and stage times of the last requests."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from device_app.store.database import Database
from device_app.store.rows import PAGE_SIZE, Page, from_us, if_readable, offset, to_us

BODY_KEPT_BYTES = 2 * 1024 * 1024
"""Most bytes kept of one body; of a longer one, its beginning, its length and the hash of the whole are kept."""
BODIES_KEPT_BYTES = 64 * 1024 * 1024
"""When all bodies together exceed this, the oldest are deleted; their lines keep length and hash."""
ENTRIES_KEPT = 20_000
ENTRIES_KEPT_DAYS = 90

_COLUMNS = (
    "id, at, purpose, words, method, url, head, body, body_bytes, body_sha256, mechanism, epsilon, status, "
    "response_head, response_bytes, ms, trouble"
)
_BRIEF = _COLUMNS.replace(" body,", " x'' AS body,")
_PRUNE_EVERY = 256


@dataclass(frozen=True)
class Departure:
    """A request just before it leaves. head is the exact request line and headers.

    words describes it in plain language.
    """

    at: datetime
    purpose: str
    words: str
    method: str
    url: str
    head: bytes
    body: bytes
    mechanism: str = "nothing"
    epsilon: float = 0.0


@dataclass(frozen=True)
class LoggedRequest:
    """A logged request. Lists leave `body` out; see ByteLog.entry.

    body holds the first BODY_KEPT_BYTES of body_bytes; status is None while unanswered, and trouble says why. epsilon
    is what was charged for sending it this time: 0 for a report that had been paid for before.
    """

    id: int
    at: datetime
    purpose: str
    words: str
    method: str
    url: str
    head: bytes
    body: bytes
    body_bytes: int
    body_sha256: str
    mechanism: str
    epsilon: float
    status: int | None
    response_head: bytes | None
    response_bytes: int | None
    ms: float | None
    trouble: str | None

    @property
    def sent_bytes(self) -> int:
        return len(self.head) + self.body_bytes

    @property
    def body_is_whole(self) -> bool:
        """Whether `body` is all that was sent."""
        return len(self.body) == self.body_bytes


class ByteLog:
    """Requests, newest first.

    A request is logged before its first byte leaves; if it can't be logged, nothing is sent.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._since_prune = 0

    def record(self, departure: Departure) -> int:
        """Log a request that is about to leave; returns its id."""
        with self._database.quick_transaction():
            kept = self._database.write(
                """INSERT INTO traffic (at, purpose, words, method, url, head, body, body_bytes, body_sha256, mechanism,
                                        epsilon)
                   VALUES (:at, :purpose, :words, :method, :url, :head, :body, :body_bytes, :body_sha256, :mechanism,
                           :epsilon)
                   RETURNING id""",
                vars(departure)
                | {
                    "at": to_us(departure.at),
                    "body": departure.body[:BODY_KEPT_BYTES],
                    "body_bytes": len(departure.body),
                    "body_sha256": sha256(departure.body).hexdigest(),
                },
            ).fetchone()
            self._since_prune += 1
            if self._since_prune >= _PRUNE_EVERY:
                self.prune(departure.at)
        return int(kept[0])

    def answered(self, entry_id: int, *, status: int, head: bytes, response_bytes: int, ms: float) -> None:
        """Record the answer: status, status line and headers, and the size of the body as received."""
        with self._database.quick_transaction():
            self._database.write(
                "UPDATE traffic SET status = ?, response_head = ?, response_bytes = ?, ms = ? WHERE id = ?",
                (status, head, response_bytes, ms, entry_id),
            )

    def failed(self, entry_id: int, *, why: str, ms: float) -> None:
        """Record that no complete answer came."""
        with self._database.quick_transaction():
            self._database.write("UPDATE traffic SET trouble = ?, ms = ? WHERE id = ?", (why, ms, entry_id))

    def entries(self, page: int = 1) -> Page[LoggedRequest]:
        """Requests newest first, without their bodies."""
        rows = self._database.rows(
            f"SELECT {_BRIEF} FROM traffic ORDER BY id DESC LIMIT ? OFFSET ?", (PAGE_SIZE, offset(page))
        )
        return Page(tuple(_traffic(row) for row in rows), page, self._database.number("SELECT count(*) FROM traffic"))

    def entry(self, entry_id: int) -> LoggedRequest | None:
        """One request with its body."""
        row = self._database.row(f"SELECT {_COLUMNS} FROM traffic WHERE id = ?", (entry_id,))
        return _traffic(row) if row else None

    def sent_since(self, purpose: str, since: datetime) -> int:
        """Return how many requests of this purpose left at or after `since`."""
        found = "SELECT count(*) FROM traffic WHERE purpose = ? AND at >= ?"
        return self._database.number(found, (purpose, to_us(since)))

    def prune(self, now: datetime) -> None:
        """Keep 90 days, 20,000 lines and 64 MiB of bodies; runs by itself every 256 requests."""
        self._since_prune = 0
        with self._database.quick_transaction():
            self._database.write(
                "DELETE FROM traffic WHERE at < ? OR id <= (SELECT max(id) FROM traffic) - ?",
                (to_us(now - timedelta(days=ENTRIES_KEPT_DAYS)), ENTRIES_KEPT),
            )
            self._database.write(
                """UPDATE traffic SET body = x'' WHERE id IN (
                     SELECT id FROM (SELECT id, sum(length(body)) OVER (ORDER BY id DESC) AS upto FROM traffic
                                     WHERE length(body) > 0)
                     WHERE upto > ?)""",
                (BODIES_KEPT_BYTES,),
            )


def _traffic(row: tuple[object, ...]) -> LoggedRequest:
    return LoggedRequest(row[0], from_us(row[1]), *row[2:])  # type: ignore[arg-type]


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
        """Call the listener for each request from now on.

        It gets the kind and the milliseconds by stage of device and server.
        """
        self._listeners.append(listener)

    def record(self, kind: str, device_ms: Mapping[str, float], server_ms: Mapping[str, float], at: datetime) -> None:
        """Store one request's times; the oldest beyond a thousand are deleted."""
        with self._database.quick_transaction():
            kept = self._database.write(
                "INSERT INTO timing (at, kind, device_ms, server_ms) VALUES (?, ?, ?, ?) RETURNING id",
                (to_us(at), kind, json.dumps(dict(device_ms)), json.dumps(dict(server_ms))),
            ).fetchone()
            self._database.write("DELETE FROM timing WHERE id <= ?", (kept[0] - TIMINGS_KEPT,))
        for listener in self._listeners:
            listener(kind, device_ms, server_ms)

    def last(self, n: int = 200) -> list[Timing]:
        """Return the newest n, newest first."""
        found = self._database.rows("SELECT at, kind, device_ms, server_ms FROM timing ORDER BY id DESC LIMIT ?", (n,))
        timings = (
            if_readable("a timing", lambda row=row: Timing(from_us(row[0]), row[1], *map(json.loads, row[2:])))  # type: ignore[misc]
            for row in found
        )
        return [timing for timing in timings if timing is not None]
