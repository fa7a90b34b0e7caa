"""Connections that can't be kept for nothing: time limits for headers, idleness and unread answers, and a bound.

uvicorn limits only the time between two requests of a connection. Here one look a second closes what has stalled, and a
full server closes the connection that has waited longest for its request's headers to make room for the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backend.errors import OverCapacity
from backend.problems import problem_of

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as BaseProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as BaseProtocol

LOOK_EVERY_SEC = 0.5


@dataclass(frozen=True)
class ConnectionLimits:
    """connections: open at a time. header_sec: until a request's headers are complete, from connecting or from their
    first byte. unread_sec: in which at least a byte of a full send buffer must be read."""

    connections: int
    header_sec: float
    unread_sec: float


class Connections:
    """The connections of one server. Use on one event loop."""

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float] | None = None) -> None:
        self.limits, self._clock = limits, clock
        self._open: dict[LimitedConnection, None] = {}  # in the order of their last request
        self._next_poll: asyncio.TimerHandle | None = None
        self.closed = 0

    def now(self) -> float:
        """The loop's clock, or the one given."""
        return asyncio.get_running_loop().time() if self._clock is None else self._clock()

    def add(self, connection: LimitedConnection) -> bool:
        """Whether there is room, made by closing whoever has waited longest for its headers."""
        if len(self._open) >= self.limits.connections:
            longest = next((each for each in self._open if each.awaits_headers), None)
            if longest is None:
                return False
            self._drop(longest)
        self._open[connection] = None
        if self._next_poll is None:
            self._next_poll = asyncio.get_running_loop().call_later(LOOK_EVERY_SEC, self._poll)
        return True

    def renew(self, connection: LimitedConnection) -> None:
        """A connection that has just brought a whole request is the last to be closed."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def discard(self, connection: LimitedConnection) -> None:
        """A connection has ended."""
        self._open.pop(connection, None)

    def poll(self) -> None:
        """Close what has stalled."""
        now = self.now()
        for each in list(self._open):
            if each.has_stalled(now):
                self._drop(each)

    def _drop(self, connection: LimitedConnection) -> None:
        self.closed += 1
        self.discard(connection)
        connection.transport.abort()

    def _poll(self) -> None:
        self._next_poll = None
        self.poll()
        if self._open:
            self._next_poll = asyncio.get_running_loop().call_later(LOOK_EVERY_SEC, self._poll)


class LimitedConnection(BaseProtocol):
    """uvicorn's HTTP connection, known to the server's `Connections`."""

    def __init__(self, *args: Any, known: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known = known
        self._waits_since: float | None = None
        self._unread: tuple[float, int] | None = None
        self._refused = False

    @property
    def awaits_headers(self) -> bool:
        """Whether no request of this connection is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def has_stalled(self, now: float) -> bool:
        """Whether a limit is passed; also notes how much of the answer is unread."""
        limits = self._known.limits
        if self._waits_since is not None and now - self._waits_since > limits.header_sec:
            return True
        unread = self.transport.get_write_buffer_size()
        if not unread:
            self._unread = None
        elif self._unread is None or unread < self._unread[1]:
            self._unread = (now, unread)
        return self._unread is not None and now - self._unread[0] > limits.unread_sec

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it in, or refuse it in one write."""
        self.transport = transport
        if not self._known.add(self):
            self._refused = True
            transport.write(_REFUSAL)
            transport.close()
            return
        super().connection_made(transport)
        self._waits_since = self._known.now()

    def data_received(self, data: bytes) -> None:
        """Read on. The clock of the headers runs from their first byte until they are complete."""
        if self._refused:
            return
        super().data_received(data)
        if not self.awaits_headers:
            if self._waits_since is not None:
                self._waits_since = None
                self._known.renew(self)
        elif self._waits_since is None:
            self._waits_since = self._known.now()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        self._known.discard(self)
        if not self._refused:
            super().connection_lost(exc)


def _refusal() -> bytes:
    refusal = OverCapacity()
    body = problem_of(refusal).model_dump_json(exclude_none=True).encode()
    head = (
        f"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n"
        f"retry-after: {refusal.retry_after_sec}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


_REFUSAL = _refusal()
