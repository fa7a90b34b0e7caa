"""The outermost layer: the protocol's version, body limits, the request log, and the last net for errors.

Plain ASGI, so that a body is counted while it streams in and never copied.
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.errors import BodyTooLarge, ProtocolDiffers
from backend.problems import problem_response, unexpected
from device_app.wire.ids import PROTOCOL_HEADER, PROTOCOL_VERSION
from device_app.wire.recall import RECALL_REQUEST_LIMIT_BYTES
from device_app.wire.rounds import UPLOAD_LIMIT_BYTES

OTHER_LIMIT_BYTES = 1024 * 1024
SHARES_LIMIT_BYTES = 8 * 1024 * 1024
BODY_LIMITS_BYTES: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"POST /v1/recall"), RECALL_REQUEST_LIMIT_BYTES),
    (re.compile(r"PUT /v1/rounds/[^/]+/(updates|masked)/[^/]+"), UPLOAD_LIMIT_BYTES),
    (re.compile(r"PUT /v1/rounds/[^/]+/(shares|unmask)/[^/]+"), SHARES_LIMIT_BYTES),
)

SPOKEN = (PROTOCOL_HEADER.encode("ascii"), str(PROTOCOL_VERSION).encode("ascii"))

_log = logging.getLogger("backend.requests")


def body_limit_bytes(method: str, path: str) -> int:
    """The most a body may have on this route."""
    for route, limit in BODY_LIMITS_BYTES:
        if route.fullmatch(f"{method} {path}"):
            return limit
    return OTHER_LIMIT_BYTES


class _Overflow(Exception):
    """Thrown into whoever reads the body on."""


@dataclass
class _Exchange:
    """One request on its way through."""

    limit: int
    received: int = 0
    overflowed: bool = False
    status: int = 0
    sent: int = 0


class Guard:
    """ASGI middleware; install it last, so that it is the outermost.

    The log line has method, path without query (a query may hold the operator's token), status, bytes and milliseconds,
    and nothing of any body or header. A round's pseudonym in a path is cut out.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        exchange = _Exchange(limit=body_limit_bytes(scope["method"], scope["path"]))

        async def counted_receive() -> Message:
            message = await receive()
            exchange.received += len(message.get("body", b""))
            if exchange.received > exchange.limit:
                exchange.overflowed = True
                raise _Overflow
            return message

        async def watched_send(message: Message) -> None:
            if exchange.overflowed and not exchange.status:
                return  # whatever the app made of the broken body is replaced below
            await noted_send(message)

        async def noted_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), SPOKEN]}
            else:
                exchange.sent += len(message.get("body", b""))
            await send(message)

        try:
            if _header(scope, SPOKEN[0]) not in (b"", SPOKEN[1]):
                await problem_response(ProtocolDiffers())(scope, receive, noted_send)
            elif _declared_bytes(scope) > exchange.limit:
                exchange.overflowed = True
            else:
                await self._app(scope, counted_receive, watched_send)
        except _Overflow:
            pass
        except Exception as error:
            if exchange.status:
                raise  # half an answer is out: the server must break the connection
            await unexpected(error)(scope, receive, noted_send)
        if exchange.overflowed and not exchange.status:
            refusal = problem_response(BodyTooLarge(exchange.limit), headers={"Connection": "close"})
            await refusal(scope, receive, noted_send)
        _log.info(
            "%s %s %d received=%d sent=%d ms=%.1f",
            scope["method"],
            _without_pseudonym(scope["path"]),
            exchange.status,
            exchange.received,
            exchange.sent,
            (time.perf_counter() - started) * 1_000,
        )


def _declared_bytes(scope: Scope) -> int:
    declared = _header(scope, b"content-length")
    return int(declared) if declared.isdigit() else 0


def _header(scope: Scope, wanted: bytes) -> bytes:
    """The first header of that name; empty where there is none."""
    return next((value for name, value in scope["headers"] if name == wanted), b"")


def _without_pseudonym(path: str) -> str:
    return re.sub(r"(/rounds/[^/]+/[^/]+/)[^/]+", r"\1...", path)
