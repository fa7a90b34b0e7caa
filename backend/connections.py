"""Connections that can't be kept for nothing: limits of time for headers, idleness and unread answers, of bytes for
headers, and a bound on how many there are.

uvicorn limits only the time between two requests of a connection. Here one look a second closes what has stalled, and a
full server closes a connection that waits for its client to make room for the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from backend.errors import OverCapacity
from backend.problems import problem_of

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as BaseProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as BaseProtocol

LOOK_EVERY_SEC = 0.5
HEAD_LIMIT_BYTES = 64 * 1024
"""Of a request's line, headers and trailers. The parser joins them piece by piece, which takes a time that grows with
their square: 47 MB of one URL kept the event loop for seven seconds."""
PIPELINED_LIMIT = 4
"""Requests that may wait behind the one being answered. Each is held in memory, and no client of ours sends any."""

_of_clients = logging.getLogger("uvicorn.error.clients")
_of_clients.addFilter(lambda record: record.levelno >= logging.ERROR)  # uvicorn's own set-up takes levels away
"""Without uvicorn's warnings of what a client sends that is no HTTP, or asks to go on as a WebSocket: who sends such
things as fast as it can would fill the disk with lines, and no limit of requests counts them."""


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
        """Whether there is room, made by closing whoever has waited longest for its headers; where nobody does, whoever
        has sent the rest of a small body, or read its answer, for the longest time not."""
        if len(self._open) >= self.limits.connections:
            longest = next((each for each in self._open if each.awaits_headers), None)
            longest = longest or next((each for each in self._open if each.awaits_client), None)
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


_TELLS_OF_PARTS = hasattr(BaseProtocol, "on_header")
"""Of httptools' parser. h11, which uvicorn has on Windows, keeps a limit of 64 KB of its own."""


class HeadTooLarge(ValueError):
    """Raised into the parser, which gives the connection up."""


class LimitedConnection(BaseProtocol):
    """uvicorn's HTTP connection, known to the server's `Connections`."""

    def __init__(self, *args: Any, known: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _of_clients
        self._known = known
        self._waits_since: float | None = None
        self._unread: tuple[float, int] | None = None
        self._refused = False
        self._head_bytes = self._fed_bytes = self._body_bytes = 0

    @property
    def awaits_headers(self) -> bool:
        """Whether no request of this connection is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def awaits_client(self) -> bool:
        """Whether a request is being answered and it's the client that is waited for: for the rest of its body, or for
        reading its answer. An upload (PUT) doesn't count: it has a place, and may take its time."""
        if self.awaits_headers:
            return False
        small_body_due = self.cycle.more_body and not self.cycle.body and self.cycle.scope["method"] != "PUT"
        return small_body_due or self.transport.get_write_buffer_size() > 0

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
        if self._refused or self.transport.is_closing():
            return
        self._fed_bytes += len(data)
        super().data_received(data)
        # What is no body is head, trailers or the frames of chunks. The parser tells of a header only when it's whole,
        # so one without an end shows nowhere else.
        if _TELLS_OF_PARTS and self._fed_bytes - self._body_bytes > HEAD_LIMIT_BYTES + self._body_bytes:
            self.send_400_response("The request has too much besides its body.")
            return
        if not self.awaits_headers:
            if self._waits_since is not None:
                self._waits_since = None
                self._known.renew(self)
        elif self._waits_since is None:
            self._waits_since = self._known.now()

    def on_message_begin(self) -> None:
        """Another request. What came with its first bytes isn't counted, which is one read of the socket at most."""
        self._head_bytes = self._fed_bytes = self._body_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A piece of the request's line."""
        self._count_head(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header or a trailer."""
        self._count_head(name, value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A request may begin, or wait for the one before it."""
        if len(self.pipeline) >= PIPELINED_LIMIT:
            raise HeadTooLarge
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Refuse what can't be read, and close. Into an answer that is under way nothing may be written."""
        if self.awaits_headers:
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def _count_head(self, *parts: bytes) -> None:
        self._head_bytes += sum(map(len, parts))
        if self._head_bytes > HEAD_LIMIT_BYTES:
            raise HeadTooLarge

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        self._known.discard(self)
        if not self._refused:
            super().connection_lost(exc)


def limited_http(limits: ConnectionLimits) -> Any:
    """What uvicorn takes as its `http`: connections of one server within these limits."""
    return partial(LimitedConnection, known=Connections(limits))


def _refusal() -> bytes:
    refusal = OverCapacity()
    body = problem_of(refusal).model_dump_json(exclude_none=True).encode()
    head = (
        f"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n"
        f"retry-after: {refusal.retry_after_sec}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


_REFUSAL = _refusal()
