"""Answers GET requests whose answer is the same for every device, from memory and before the framework's stack.

Most requests of a large server are polls that find nothing new. An answer is kept for a fraction of a second, so a
process needs the database and a thread only that often, however many devices poll, and processes agree within that
time. Requests that arrive while the answer is being made wait for it. This alone decides about 304 Not Modified.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.server.request_limits import FROM_MEMORY, SOURCE, takes_gzip

SHARED = ("/v1/releases/", "/v1/blobs/", "/v1/news/front", "/v1/pictures", "/v1/keys", "/v1/rounds/current")
"""Prefixes of addresses whose answers depend on nothing but the address and the encoding."""
FOR_ALL = "public, max-age=1"
"""Cache-Control of an answer that is the same for all and may change: a proxy in front may keep it for a second."""
ANSWER_LIMIT_BYTES = 1 << 20
"""A larger answer is passed on as it is made."""
KEPT_LIMIT_BYTES = 32 << 20
ENTRY_BYTES = 1_000
"""Counted for each answer beside its body and query."""
NOT_MODIFIED = frozenset({b"etag", b"cache-control", b"vary"})
"""Headers of a 304 (RFC 9110, section 15.4.5)."""

READ = frozenset({b"if-none-match", b"accept-encoding", b"range"})

Key = tuple[str, bytes, bool]
"""Path, query, and whether the client takes gzip."""


@dataclass(frozen=True)
class CachedAnswer:
    """A whole answer, and the route that made it, for the metrics."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    route: object
    fresh_until: float
    weight_bytes: int
    etag: str | None
    headers_of_304: list[tuple[bytes, bytes]]

    async def send(self, known: str, send: Send) -> None:
        """Send the answer, or 304 if its ETag is in `known`, the request's If-None-Match."""
        if self.etag is not None and (known == self.etag or self.etag in _etags(known)):
            await send({"type": "http.response.start", "status": 304, "headers": self.headers_of_304})
            await send({"type": "http.response.body"})
            return
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


class SharedAnswers:
    """ASGI middleware for the addresses in SHARED.

    Args:
        keep_sec: how long an answer may be repeated, counted from the call of the app; 0: never.
        on_request: for a path, what is called with the source of each request for it, answered from memory or not.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keep_sec: float,
        on_request: Mapping[str, Callable[[str | None], None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app, self._keep_sec, self._on_request, self._clock = app, keep_sec, on_request, clock
        self._kept: OrderedDict[Key, CachedAnswer] = OrderedDict()
        self._kept_bytes = 0
        self._under_way: dict[Key, asyncio.Future[CachedAnswer | None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(SHARED):
            await self._app(scope, receive, send)
            return
        if note := self._on_request.get(scope["path"]):
            note(scope.get(SOURCE))
        headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in READ}
        known = headers.get(b"if-none-match", "")
        if not self._keep_sec or b"range" in headers:
            await self._app(scope, receive, _Conditional(known, send))
            return
        key = (scope["path"], scope["query_string"], takes_gzip(headers.get(b"accept-encoding")))
        kept = self._kept.get(key)
        if kept is None or self._clock() >= kept.fresh_until:
            if (others := self._under_way.get(key)) is None:
                kept = await self._ask(key, scope, receive, send, known)
                if kept is None:
                    return  # already sent
            elif (kept := await others) is None:
                await self._app(scope, receive, _Conditional(known, send))
                return
        scope["route"] = kept.route
        scope[FROM_MEMORY] = True
        await kept.send(known, send)

    async def _ask(self, key: Key, scope: Scope, receive: Receive, send: Send, known: str) -> CachedAnswer | None:
        """Ask the app for the whole answer.

        An answer that can't be kept is sent at once: then this returns None, to others who wait for it, too.
        """
        requested_at = self._clock()
        answer = self._under_way[key] = asyncio.get_running_loop().create_future()
        start: Message = {}
        parts: list[bytes] = []
        passes_on = False
        pass_on = _Conditional(known, send)

        async def collect(message: Message) -> None:
            nonlocal start, passes_on
            if message["type"] == "http.response.start":
                start = message
                if passes_on := not _can_be_kept(message):
                    self._finish(key, answer, None)
            if passes_on:
                await pass_on(message)
            else:
                parts.append(message.get("body", b""))

        try:
            await self._app(scope, receive, collect)
            if passes_on:
                return None
            body = b"".join(parts)
            kept = CachedAnswer(
                status=start["status"],
                headers=start["headers"],
                body=body,
                route=scope.get("route"),
                fresh_until=requested_at + self._keep_sec,
                weight_bytes=len(body) + len(scope["query_string"]) + ENTRY_BYTES,
                etag=_etag_of(start["headers"]),
                headers_of_304=_headers_of_304(start["headers"]),
            )
            self._keep(key, kept)
            self._finish(key, answer, kept)
            return kept
        finally:
            self._finish(key, answer, None)

    def _finish(self, key: Key, answer: asyncio.Future[CachedAnswer | None], kept: CachedAnswer | None) -> None:
        if not answer.done():
            del self._under_way[key]
            answer.set_result(kept)

    def _keep(self, key: Key, kept: CachedAnswer) -> None:
        if before := self._kept.pop(key, None):
            self._kept_bytes -= before.weight_bytes
        self._kept[key] = kept
        self._kept_bytes += kept.weight_bytes
        while self._kept_bytes > KEPT_LIMIT_BYTES:
            self._kept_bytes -= self._kept.popitem(last=False)[1].weight_bytes


def _can_be_kept(start: Message) -> bool:
    declared = next((value for name, value in start["headers"] if name == b"content-length"), None)
    if start["status"] == 204:
        return True
    return start["status"] == 200 and declared is not None and int(declared) <= ANSWER_LIMIT_BYTES


class _Conditional:
    """Sends an app's answer, or 304 if its ETag is in `known`, the request's If-None-Match (RFC 9110, 13.1.2)."""

    def __init__(self, known: str, send: Send) -> None:
        self._known, self._send, self._drops = _etags(known), send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._drops = _etag_of(message["headers"]) in self._known
            if self._drops:
                headers = _headers_of_304(message["headers"])
                await self._send({"type": "http.response.start", "status": 304, "headers": headers})
                await self._send({"type": "http.response.body"})
                return
        if not self._drops:
            await self._send(message)


def _etags(known: str) -> set[str]:
    return {each.strip().removeprefix("W/") for each in known.split(",") if each}


def _etag_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    return next((value.decode("latin-1") for name, value in headers if name == b"etag"), None)


def _headers_of_304(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [each for each in headers if each[0] in NOT_MODIFIED]
