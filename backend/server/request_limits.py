"""The outermost layer: protocol version, capacity, body limits of size and time, request log and final error handling.

Plain ASGI, so that a body is counted while it streams in and never copied.

Admission control limits requests per minute and source, running requests and waiting ones. A source is one network
address (`ClientAddresses.source`). The waiting line is shared fairly: each source's first request comes before any
source's second, and if the line is full, a source with fewer waiting requests takes the place of one with more. A
request whose address has no limits is its own source.
"""

import asyncio
import logging
import math
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import ClassVar

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.errors import BodyTooLarge, BodyTooSlow, OverCapacity, ProtocolDiffers, TooManyRequests
from backend.server.problems import problem_response, unexpected
from protocol.ids import PROTOCOL_HEADER, PROTOCOL_VERSION
from protocol.own_feeds import OPML_LIMIT_BYTES, PREFIX
from protocol.recall import RECALL_REQUEST_LIMIT_BYTES
from protocol.rounds import UPLOAD_LIMIT_BYTES

SOURCES_KEPT = 50_000
"""Sources counted in memory; beyond that, the least recently seen is forgotten."""
EVERYBODY = "everybody"
FULLER_BY = 2
"""A source takes another's place if the other has this many more waiting requests; with one more they would swap."""


@dataclass
class TokenBuckets:
    """One token bucket per source: it holds a minute's requests and refills evenly.

    Safe in threads.

    Args:
        per_minute: requests from one source; 0: no limit.
        clock: monotonic seconds.
    """

    per_minute: int
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seconds_to_wait(self, source: str | None) -> float:
        """Return 0 and count the request if it may continue; else how long to wait.

        None: a source without limits.
        """
        if source is None or not self.per_minute:
            return 0.0
        full, now = float(self.per_minute), self.clock()
        with self._lock:
            left, since = self._left.pop(source, (full, now))
            left = min(full, left + (now - since) * full / 60)
            taken = left >= 1.0
            self._left[source] = (left - 1.0 if taken else left, now)
            if len(self._left) > SOURCES_KEPT:
                self._left.popitem(last=False)
        return 0.0 if taken else (1.0 - left) * 60 / full


class RateLimits:
    """Limits of requests per minute for one source, and for all together.

    Checked before a request is read.

    Addresses in the setting unbounded_addresses are not counted at all.
    """

    free: ClassVar[frozenset[str]] = frozenset({"/v1/health"})
    """Paths that aren't counted, so that a flood can't make a running server look dead."""

    def __init__(self, *, per_minute: int, per_minute_in_all: int, clock: Callable[[], float] = time.monotonic) -> None:
        """0: no limit."""
        self._each = TokenBuckets(per_minute, clock)
        self._all = TokenBuckets(per_minute_in_all, clock)

    def check(self, source: str | None, path: str) -> None:
        """Count a request of this source.

        Raises TooManyRequests; a refused request doesn't use up the others' limit.
        """
        if source is None or path in self.free:
            return
        for buckets, who in ((self._each, source), (self._all, EVERYBODY)):
            if wait_sec := buckets.seconds_to_wait(who):
                raise TooManyRequests(buckets.per_minute, everybody=who is EVERYBODY, wait_sec=math.ceil(wait_sec))


class Admission:
    """Lets `running` requests run and `waiting` more wait for at most `wait_sec`.

    For one event loop.

    Refused are: a request that finds the line full; a waiting request of the source with the most requests, when a
    source with fewer arrives; and one that has waited too long, whose answer would be late.
    """

    def __init__(
        self, *, running: int, waiting: int, wait_sec: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit, self._waiting, self._wait_sec, self._clock = running, waiting, wait_sec, clock
        self._running = self._standing = 0
        self._line: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        self.refused = 0

    def check(self, source: str | None = None) -> None:
        """Raise OverCapacity if there is no room for this source. Called before a request is read."""
        if self._standing >= self._waiting and self._fuller_than(source) is None:
            self.refused += 1
            raise OverCapacity

    @asynccontextmanager
    async def place(self, source: str | None = None) -> AsyncIterator[None]:
        """Hold a running place during the block. Raises OverCapacity."""
        await self.enter(source)
        try:
            yield
        finally:
            self.leave()

    async def enter(self, source: str | None = None) -> None:
        """Take a running place; `leave` gives it back. Raises OverCapacity.

        Sources take turns, and each source's requests are served in order. None: a source without limits.
        """
        if self._running < self._limit:
            self._running += 1
            try:
                # Yield once, so that all requests that arrived together are in line before one is answered.
                await asyncio.sleep(0)
            except BaseException:
                self.leave()
                raise
            return
        self.check(source)
        if self._standing >= self._waiting and (fuller := self._fuller_than(source)) is not None:
            newest = self._line[fuller][-1]
            self._drop(fuller, newest)
            newest.set_exception(OverCapacity())
        arrived, turn = self._clock(), asyncio.get_running_loop().create_future()
        name: Hashable = turn if source is None else source
        self._line.setdefault(name, deque()).append(turn)
        self._standing += 1
        try:
            await turn
        except asyncio.CancelledError:
            self._drop(name, turn)
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave()  # the place was granted at the same moment
            raise
        except OverCapacity:
            self.refused += 1
            raise
        if self._clock() - arrived > self._wait_sec:
            self.leave()
            self.refused += 1
            raise OverCapacity

    def leave(self) -> None:
        """Give a place back, or pass it to the first request of the next source."""
        while self._line:
            name, turns = next(iter(self._line.items()))
            turn = turns[0]
            self._line.move_to_end(name)
            self._drop(name, turn)
            if not turn.done():
                turn.set_result(None)
                return
        self._running -= 1

    def _fuller_than(self, source: str | None) -> Hashable | None:
        """The source with the most waiting requests, if it has enough more than this one to lose a place to it."""
        own = 0 if source is None else len(self._line.get(source, ()))
        name = max(self._line, key=lambda one: len(self._line[one]), default=None)
        return name if name is not None and len(self._line[name]) >= own + FULLER_BY else None

    def _drop(self, name: Hashable, turn: asyncio.Future[None]) -> None:
        """Remove this request from the line, if it is still there."""
        turns = self._line.get(name)
        if turns is None:
            return
        with suppress(ValueError):
            turns.remove(turn)
            self._standing -= 1
        if not turns:
            del self._line[name]


RECALL, HEALTH, READER = "/v1/recall", "/v1/health", "/reader/"
READS = frozenset({"GET", "HEAD"})
OTHER_LIMIT_BYTES = 128 * 1024
SHARES_LIMIT_BYTES = 8 * 1024 * 1024
OPML_REQUEST_LIMIT_BYTES = OPML_LIMIT_BYTES * 4 // 3 + OTHER_LIMIT_BYTES
"""As base64 in a JSON message."""
BODY_LIMITS_BYTES: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"POST /v1/recall"), RECALL_REQUEST_LIMIT_BYTES),
    (re.compile(r"PUT /v1/rounds/[^/]+/(updates|masked)/[^/]+"), UPLOAD_LIMIT_BYTES),
    (re.compile(r"PUT /v1/rounds/[^/]+/(shares|unmask)/[^/]+"), SHARES_LIMIT_BYTES),
    (re.compile(rf"POST {PREFIX}opml"), OPML_REQUEST_LIMIT_BYTES),
)

SAFE_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""Headers of every answer that doesn't set them itself: other pages may not render, frame or read it."""
LOGGED_PATH_CHARS = 200
SPOKEN = (PROTOCOL_HEADER.encode("ascii"), str(PROTOCOL_VERSION).encode("ascii"))

SOURCE = "ownfeed.source"
"""Key of the request's source in its ASGI scope."""
FROM_MEMORY = "ownfeed.from_memory"
"""Key in the scope of a request that was answered from memory: it is counted, but has no line in the log."""

SourceOf = Callable[[str | None, Sequence[str]], str | None]
"""Returns a request's source from its peer address and X-Forwarded-For (`ClientAddresses.source`)."""
NoteRequest = Callable[[str, str | None, int, float], None]
"""Called for each answer with method, the route's template or None, status, seconds."""

_log = logging.getLogger("backend.requests")


def body_limit_bytes(method: str, path: str) -> int:
    """The maximum size of a body on this route."""
    if method in READS:
        return OTHER_LIMIT_BYTES
    for route, limit in BODY_LIMITS_BYTES:
        if route.fullmatch(f"{method} {path}"):
            return limit
    return OTHER_LIMIT_BYTES


@dataclass(frozen=True)
class BodyTimes:
    """How long the server waits for a body.

    It waits wait_sec, and one more second for every bytes_per_sec received, but never longer than limit_sec. Only
    waiting counts, not the time in which the server doesn't read.
    """

    wait_sec: float = 10.0
    bytes_per_sec: int = 4_096
    limit_sec: float = 600.0

    def left_sec(self, received: int, waited_sec: float) -> float:
        """How long the next part may take."""
        return min(self.wait_sec + received / self.bytes_per_sec, self.limit_sec) - waited_sec

    def __str__(self) -> str:
        return f"{self.wait_sec:g} s and {self.bytes_per_sec} bytes/s, at most {self.limit_sec:g} s"


class _Overflow(Exception):
    """Raised in code that continues to read an oversized body."""


@dataclass
class _Exchange:
    """One request while it is processed."""

    limit: int
    received: int = 0
    waited_sec: float = 0.0
    whole: bool = False
    overflowed: bool = False
    too_slow: bool = False
    status: int = 0
    sent: int = 0


class RequestLimits:
    """ASGI middleware; install it last, so that it is the outermost.

    The log line has method, path without query (a query may hold the operator's token), status, bytes and milliseconds,
    and nothing of any body or header. A round's pseudonym in a path is removed.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        recall: Admission | None = None,
        times: BodyTimes | None = None,
        source_of: SourceOf | None = None,
        rates: RateLimits | None = None,
        note: NoteRequest | None = None,
    ) -> None:
        """Configure the limits.

        recall: admission whose full line refuses a report before its body is read. times: limits for bodies. source_of:
        returns the sources among which lines are shared; without it every request is its own source. rates: limits of
        requests per minute and source. note: called for each answer.
        """
        self._note, self._source_of, self._rates = note, source_of, rates
        self._app, self._recall, self._times = app, recall, times or BodyTimes()
        self._others_refused = 0
        self._refusals_logged_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        exchange = _Exchange(limit=body_limit_bytes(scope["method"], scope["path"]))

        async def counted_receive() -> Message:
            if exchange.whole:
                return await receive()  # code that reads on waits for the end of the connection
            started = time.monotonic()
            try:
                async with asyncio.timeout(self._times.left_sec(exchange.received, exchange.waited_sec)):
                    message = await receive()
            except TimeoutError:
                exchange.too_slow = True
                raise _Overflow from None
            exchange.waited_sec += time.monotonic() - started
            exchange.whole = not message.get("more_body", False)
            exchange.received += len(message.get("body", b""))
            if exchange.received > exchange.limit:
                exchange.overflowed = True
                raise _Overflow
            return message

        async def watched_send(message: Message) -> None:
            if (exchange.overflowed or exchange.too_slow) and not exchange.status:
                return  # whatever the app made of the broken body is replaced below
            await noted_send(message)

        async def noted_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message = {**message, "headers": _with_safe(message.get("headers", ()))}
            else:
                exchange.sent += len(message.get("body", b""))
            await send(message)

        try:
            if _header(scope, SPOKEN[0]) not in (b"", SPOKEN[1]):
                await problem_response(ProtocolDiffers())(scope, receive, noted_send)
            elif _declared_bytes(scope) > exchange.limit:
                exchange.overflowed = True
            else:
                source = scope[SOURCE] = self._source(scope)
                if self._rates is not None:
                    self._rates.check(source, scope["path"])
                if scope["path"] == RECALL and self._recall is not None:
                    self._recall.check(source)
                await self._app(scope, counted_receive, watched_send)
        except (_Overflow, ClientDisconnect):
            pass
        except TooManyRequests as often:
            waits = {"Retry-After": str(often.wait_sec)}
            await problem_response(often, headers=waits)(scope, receive, noted_send)
        except OverCapacity as full:
            await problem_response(full)(scope, receive, noted_send)
            self._others_refused += scope["path"] != RECALL
            self._note_refusals()
            return
        except Exception as error:
            if exchange.status:
                raise  # half of the answer is sent: the server must break the connection
            await unexpected(error)(scope, receive, noted_send)
        if (exchange.overflowed or exchange.too_slow) and not exchange.status:
            broken = BodyTooLarge(exchange.limit) if exchange.overflowed else BodyTooSlow(str(self._times))
            refusal = problem_response(broken, headers={"Connection": "close"})
            await refusal(scope, receive, noted_send)
        seconds = time.perf_counter() - started
        if self._note is not None:
            self._note(scope["method"], getattr(scope.get("route"), "path", None), exchange.status, seconds)
        if FROM_MEMORY in scope and exchange.status in (200, 204, 304):
            return
        _log.info(
            "%s %s %d received=%d sent=%d ms=%.1f",
            scope["method"],
            _for_the_log(scope["path"]),
            exchange.status,
            exchange.received,
            exchange.sent,
            seconds * 1_000,
        )

    def _source(self, scope: Scope) -> str | None:
        if self._source_of is None:
            return None
        peer = scope["client"][0] if scope.get("client") else None
        passed_on = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return self._source_of(peer, passed_on)

    def _note_refusals(self) -> None:
        """Log one line per second, however many are refused: the log must not cost what refusing saves."""
        now = time.monotonic()
        if now - self._refusals_logged_at >= 1:
            self._refusals_logged_at = now
            recalls = self._recall.refused if self._recall else 0
            _log.warning("over capacity: %d recall and %d other requests refused so far", recalls, self._others_refused)


class ReadAdmission:
    """ASGI middleware: a request without a body holds a place until its answer begins.

    Install it behind `SharedAnswers`, whose answers from memory need no place, and `RequestLimits`, which answers
    OverCapacity. A client that reads slowly holds no place.
    """

    def __init__(self, app: ASGIApp, *, admission: Admission) -> None:
        self._app, self._admission = app, admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection. Raises OverCapacity."""
        if scope["type"] != "http" or scope["method"] not in READS or scope["path"] == HEALTH:
            await self._app(scope, receive, send)
            return
        await self._admission.enter(scope[SOURCE])
        holds = True

        async def leaving_send(message: Message) -> None:
            nonlocal holds
            if holds:
                holds = False
                self._admission.leave()
            await send(message)

        try:
            await self._app(scope, receive, leaving_send)
        finally:
            if holds:
                self._admission.leave()


def _with_safe(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """An answer's headers with the protocol's version, and the SAFE_HEADERS that it lacks."""
    own = [*headers]
    present = {name.lower() for name, _ in own}
    return [*own, SPOKEN, *(each for each in SAFE_HEADERS if each[0] not in present)]


def takes_gzip(accept_encoding: str | None) -> bool:
    """Whether a client that sends this header accepts gzip."""
    if accept_encoding is None:
        return False
    offers = (part.strip().lower() for part in accept_encoding.split(","))
    return any(offer.split(";")[0] == "gzip" and not offer.replace(" ", "").endswith(";q=0") for offer in offers)


def _declared_bytes(scope: Scope) -> int:
    declared = _header(scope, b"content-length")
    return int(declared) if declared.isdigit() else 0


def _header(scope: Scope, wanted: bytes) -> bytes:
    """The first header of that name; empty if there is none."""
    return next((value for name, value in scope["headers"] if name == wanted), b"")


def _for_the_log(path: str) -> str:
    """The path for the log, on one line of limited length, without a round's pseudonym or a browser device's page.

    A path may hold line breaks, which would forge a line of the log, and control sequences for a terminal.
    """
    kept = re.sub(r"(/rounds/[^/]+/[^/]+/)[^/]+", r"\1...", path)
    kept = re.sub(rf"(?s)\A{READER}(?!files/|builds?\.json\Z).+", f"{READER}...", kept)
    shown = kept if kept.isascii() and kept.isprintable() else ascii(kept)[1:-1]
    return shown if len(shown) <= LOGGED_PATH_CHARS else f"{shown[:LOGGED_PATH_CHARS]}..."
