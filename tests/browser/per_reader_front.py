"""ASGI middleware before a real backend that gives every reader's page its own host name, troubles and open count.

A page at `http://<name>.localhost:<port>` is recognised by its name, so many pages can share one Chromium and one
backend. Every request of a page is recorded, including those for the files of its code.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from protocol.popularity import MATERIAL, CountList
from tests.doubles.attacked_device import HONEST, UNIT
from tests.doubles.malicious_server import MaliciousServer
from tests.doubles.read_sessions import ReceivedRequest, without_ids

LATE_SEC, RETRY_AFTER_SEC = (1, 3, 12), (1, 2, 6)
"""A device waits 10 s for an answer."""
TROUBLES = {"kind": (), "busy": (429, 503), "slow": (0,), "any": (0, 429, 503)}


@dataclass
class Visit:
    """The requests of one page and the troubles it meets; times count from `began_sec`.

    counts: whether its count is open.
    """

    count: MaliciousServer
    received: list[ReceivedRequest] = field(default_factory=list)
    began_sec: float = field(default_factory=time.monotonic)
    troubles: list[tuple[float, float, int, int]] = field(default_factory=list)
    counts: bool = False

    @property
    def material(self) -> str:
        """The path of the count's list."""
        return f"/v1/blobs/{self.count.manifest.materials[MATERIAL].sha256}"

    def begin(self, seed: int, trouble_kind: str, seconds: float) -> None:
        """Clear the recorded requests, open the count, and draw three troubles of that kind from the seed."""
        chance, kinds = random.Random(f"server {seed}"), TROUBLES[trouble_kind]
        self.troubles = []
        for _ in range(3 if kinds else 0):
            start, kind = chance.uniform(0.05, 0.9) * seconds, chance.choice(kinds)
            span = chance.choice(RETRY_AFTER_SEC if kind else LATE_SEC)
            self.troubles.append((start, start + seconds / 12, kind, span))
        self.counts = True
        self.received, self.began_sec = [], time.monotonic()

    def trouble(self, at_sec: float) -> tuple[int, int] | None:
        """Return the trouble at that time: status and Retry-After, or 0 and the delay of the answer in seconds."""
        return next((rest for start, end, *rest in self.troubles if start <= at_sec < end), None)  # type: ignore[return-value]


class PerReaderFront:
    """Serves `app` to the pages of `visits`, which the first label of the requested host identifies."""

    def __init__(self, app: ASGIApp, script: bytes, news: Iterable[str], key: Callable[[], Ed25519PrivateKey]) -> None:
        self._app, self._script, self._key = app, script, key
        self._listed = CountList(
            news=tuple(sorted(news)), displayed_limit=32, clicked_limit=5, displayed_unit=UNIT, window_hours=24
        )
        self.visits: dict[str, Visit] = {}

    def visit(self, name: str) -> Visit:
        """Return the visit of the page with this host name."""
        nobody = httpx.MockTransport(lambda request: httpx.Response(404))
        count = MaliciousServer(nobody, self._listed, HONEST, lambda: datetime.now(UTC), key=self._key())
        return self.visits.setdefault(name, Visit(count))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = next((value.decode() for name, value in scope["headers"] if name == b"host"), "")
        visit = self.visits.get(host.partition(".")[0])
        if visit is None:
            await self._app(scope, receive, send)
            return
        path, at_sec = scope["path"], time.monotonic() - visit.began_sec
        visit.received.append(ReceivedRequest(at_sec, f"{scope['method']} {without_ids(path)}"))
        if path.startswith("/v1/") and (trouble := visit.trouble(at_sec)):
            status, span_sec = trouble
            if status:
                problem = {"type": "urn:x", "title": "Busy", "status": status, "detail": "come later"}
                headers = {"content-type": "application/problem+json", "retry-after": str(span_sec)}
                await JSONResponse(problem, status, headers)(scope, receive, send)
                return
            await asyncio.sleep(span_sec)
        if path.startswith("/reader/files/worker.") and path.endswith(".js"):
            await self._app(scope, receive, _with_body(self._script, send))
        elif visit.counts and path.startswith(("/v1/rounds", visit.material)):
            await _counted(visit.count, scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _with_body(body: bytes, send: Send) -> Send:
    """Return a sender that keeps an answer's headers and replaces its body."""

    async def changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            other = (b"content-length", b"content-encoding", b"etag")
            kept = [(name, value) for name, value in message["headers"] if name.lower() not in other]
            await send({**message, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
        elif not message.get("more_body"):
            await send({"type": "http.response.body", "body": body})

    return changed


async def _counted(count: MaliciousServer, scope: Scope, receive: Receive, send: Send) -> None:
    try:
        body = await Request(scope, receive).body()
    except ClientDisconnect:  # it waited too long
        return
    found = count.handle_request(httpx.Request(scope["method"], f"http://count{scope['path']}", content=body))
    kept = {name: value for name, value in found.headers.items() if name != "content-length"}
    await Response(found.content, found.status_code, kept)(scope, receive, send)
