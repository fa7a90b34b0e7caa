"""The outermost layer: the protocol's version, capacity, limits of size and time for bodies, the request log, and the
last net for errors.

Plain ASGI, so that a body is counted while it streams in and never copied.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.admission import Admission
from backend.errors import BodyTooLarge, BodyTooSlow, OverCapacity, ProtocolDiffers, TooManyRequests
from backend.problems import problem_response, unexpected
from backend.rate_limits import RateLimits
from device_app.wire.ids import PROTOCOL_HEADER, PROTOCOL_VERSION
from device_app.wire.recall import RECALL_REQUEST_LIMIT_BYTES
from device_app.wire.rounds import UPLOAD_LIMIT_BYTES

RECALL, HEALTH, READER = "/v1/recall", "/v1/health", "/reader/"
OTHER_LIMIT_BYTES = 128 * 1024
SHARES_LIMIT_BYTES = 8 * 1024 * 1024
BODY_LIMITS_BYTES: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"POST /v1/recall"), RECALL_REQUEST_LIMIT_BYTES),
    (re.compile(r"PUT /v1/rounds/[^/]+/(updates|masked)/[^/]+"), UPLOAD_LIMIT_BYTES),
    (re.compile(r"PUT /v1/rounds/[^/]+/(shares|unmask)/[^/]+"), SHARES_LIMIT_BYTES),
)

SAFE_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""On every answer that doesn't say otherwise itself: nothing here is to be drawn, framed or read by another page."""
LOGGED_PATH_CHARS = 200
SPOKEN = (PROTOCOL_HEADER.encode("ascii"), str(PROTOCOL_VERSION).encode("ascii"))

SOURCE = "ownfeed.source"
"""Where a request comes from, as the key of its ASGI scope."""

SourceOf = Callable[[str | None, Sequence[str]], str | None]
"""Names where a request comes from by its connection's other end and X-Forwarded-For (`ClientAddresses.source`)."""
NoteRequest = Callable[[str, str | None, int, float], None]
"""Told of an answer: method, the route's template or None, status, seconds."""

_log = logging.getLogger("backend.requests")


def body_limit_bytes(method: str, path: str) -> int:
    """The most a body may have on this route."""
    for route, limit in BODY_LIMITS_BYTES:
        if route.fullmatch(f"{method} {path}"):
            return limit
    return OTHER_LIMIT_BYTES


@dataclass(frozen=True)
class BodyTimes:
    """How long the server waits for a body: wait_sec, and a second more for every bytes_per_sec that have come, but
    never more than limit_sec. Only waiting counts, not the time in which the server reads nothing."""

    wait_sec: float = 10.0
    bytes_per_sec: int = 4_096
    limit_sec: float = 600.0

    def left_sec(self, received: int, waited_sec: float) -> float:
        """How long the next part may take."""
        return min(self.wait_sec + received / self.bytes_per_sec, self.limit_sec) - waited_sec

    def __str__(self) -> str:
        return f"{self.wait_sec:g} s and {self.bytes_per_sec} bytes/s, at most {self.limit_sec:g} s"


class _Overflow(Exception):
    """Thrown into whoever reads the body on."""


@dataclass
class _Exchange:
    """One request on its way through."""

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
    and nothing of any body or header. A round's pseudonym in a path is cut out.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        recall: Admission | None = None,
        reads: Admission | None = None,
        times: BodyTimes | None = None,
        source_of: SourceOf | None = None,
        rates: RateLimits | None = None,
        note: NoteRequest | None = None,
    ) -> None:
        """recall: whose full line refuses a report before its body is read. reads: in which every request without a
        body has a place until its answer begins. times: for bodies. source_of: among whose sources both lines are
        shared; without it every request is a source by itself. rates: of requests a minute, by source. note: is told
        each answer."""
        self._note, self._source_of, self._rates = note, source_of, rates
        self._app, self._recall, self._reads, self._times = app, recall, reads, times or BodyTimes()
        self._refusals_logged_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        exchange = _Exchange(limit=body_limit_bytes(scope["method"], scope["path"]))
        place: Admission | None = None

        async def counted_receive() -> Message:
            if exchange.whole:
                return await receive()  # whoever asks on waits for the end of the connection
            asked = time.monotonic()
            try:
                async with asyncio.timeout(self._times.left_sec(exchange.received, exchange.waited_sec)):
                    message = await receive()
            except TimeoutError:
                exchange.too_slow = True
                raise _Overflow from None
            exchange.waited_sec += time.monotonic() - asked
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
            nonlocal place
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message = {**message, "headers": _with_safe(message.get("headers", ()))}
                if place is not None:
                    place.leave()  # a slow reader of the answer holds no place
                    place = None
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
                elif self._reads is not None and scope["method"] in ("GET", "HEAD") and scope["path"] != HEALTH:
                    await self._reads.enter(source)
                    place = self._reads
                await self._app(scope, counted_receive, watched_send)
        except (_Overflow, ClientDisconnect):
            pass
        except TooManyRequests as often:
            waits = {"Retry-After": str(often.wait_sec)}
            await problem_response(often, headers=waits)(scope, receive, noted_send)
        except OverCapacity as full:
            await problem_response(full)(scope, receive, noted_send)
            self._note_refusals()
            return
        except Exception as error:
            if exchange.status:
                raise  # half an answer is out: the server must break the connection
            await unexpected(error)(scope, receive, noted_send)
        finally:
            if place is not None:
                place.leave()
        if (exchange.overflowed or exchange.too_slow) and not exchange.status:
            broken = BodyTooLarge(exchange.limit) if exchange.overflowed else BodyTooSlow(str(self._times))
            refusal = problem_response(broken, headers={"Connection": "close"})
            await refusal(scope, receive, noted_send)
        seconds = time.perf_counter() - started
        if self._note is not None:
            self._note(scope["method"], getattr(scope.get("route"), "path", None), exchange.status, seconds)
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
        """One line a second, however many are refused: the log must not cost what refusing saves."""
        now = time.monotonic()
        if now - self._refusals_logged_at >= 1:
            self._refusals_logged_at = now
            refused = [admission.refused if admission else 0 for admission in (self._recall, self._reads)]
            _log.warning("over capacity: %d recall and %d other requests refused so far", *refused)


def _with_safe(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """An answer's headers with the protocol's version, and those of SAFE_HEADERS that it doesn't have."""
    own = [*headers]
    said = {name.lower() for name, _ in own}
    return [*own, SPOKEN, *(each for each in SAFE_HEADERS if each[0] not in said)]


def takes_gzip(headers: Mapping[str, str]) -> bool:
    """Whether the client offers to take gzip."""
    offers = (part.strip().lower() for part in headers.get("accept-encoding", "").split(","))
    return any(offer.split(";")[0] == "gzip" and not offer.replace(" ", "").endswith(";q=0") for offer in offers)


def _declared_bytes(scope: Scope) -> int:
    declared = _header(scope, b"content-length")
    return int(declared) if declared.isdigit() else 0


def _header(scope: Scope, wanted: bytes) -> bytes:
    """The first header of that name; empty where there is none."""
    return next((value for name, value in scope["headers"] if name == wanted), b"")


def _for_the_log(path: str) -> str:
    """Without a round's pseudonym and the page that a browser's device shows, in one line of so many characters: a path
    may hold line breaks, which would forge a line of the log, and a terminal's control sequences."""
    kept = re.sub(r"(/rounds/[^/]+/[^/]+/)[^/]+", r"\1...", path)
    kept = re.sub(rf"(?s)\A{READER}(?!files/|builds?\.json\Z).+", f"{READER}...", kept)
    shown = kept if kept.isascii() and kept.isprintable() else ascii(kept)[1:-1]
    return shown if len(shown) <= LOGGED_PATH_CHARS else f"{shown[:LOGGED_PATH_CHARS]}..."
