"""A backend in the same process, for tests and for fleets without sockets.

Requests are logged as usual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import Thread
from typing import Any

import httpx

ANSWER_WAIT_SEC = 120.0


class InProcess(httpx.BaseTransport):
    """Runs an ASGI app on an event loop of its own thread.

    Many devices may share one instance. The app's lifespan isn't run here: whoever builds the app starts and stops it.
    """

    def __init__(self, app: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="in-process backend", daemon=True)
        self._thread.start()
        self._transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; raises httpx.ReadTimeout if the app takes longer than two minutes."""
        asked = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        future = asyncio.run_coroutine_threadsafe(self._ask(asked), self._loop)
        try:
            status, headers, body = future.result(timeout=ANSWER_WAIT_SEC)
        except TimeoutError as late:
            future.cancel()
            raise httpx.ReadTimeout("the app in this process did not answer", request=request) from late
        return httpx.Response(status, headers=headers, stream=_Whole(body), request=request)

    async def _ask(self, request: httpx.Request) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        response = await self._transport.handle_async_request(request)
        stream = response.stream
        if not isinstance(stream, httpx.AsyncByteStream):
            raise TypeError("an ASGI answer streams asynchronously")
        body = b"".join([part async for part in stream])
        return response.status_code, response.headers.raw, body

    def close(self) -> None:
        """Stop the loop; requests under way fail."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Whole(httpx.SyncByteStream):
    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body
