"""POST /v1/recall: the articles for a report."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from backend.api.openapi import JSON, WITH_BODY, answers, parse, require_media_type, takes
from backend.server.request_limits import SOURCE, takes_gzip
from protocol.recall import CodeReport, RecallAnswer, RecallRequest
from protocol.server_timing import Stopwatch, server_timing

if TYPE_CHECKING:
    from backend.composition import Services


def router(services: Services) -> APIRouter:
    """The recall route.

    The event loop reads the body, queues the request, and answers from the cache itself. Everything else runs in a
    small thread pool for recall only: one hop for all five stages. FAISS and NumPy release the interpreter lock there,
    so the loop continues; a slow upload or console page, which run in other pools, can't take recall's threads. An
    answer to a report by code is cached compressed, as it is sent; compressing other answers would take as long as
    searching. If the queue is full, a request is refused before its body is read (`backend.server.request_limits`).
    """
    routes = APIRouter()

    @routes.post(
        "/v1/recall",
        response_class=Response,
        responses=answers(*WITH_BODY, 409, 410, also={200: RecallAnswer}),
        openapi_extra=takes(RecallRequest),
    )
    async def recall(request: Request) -> Response:
        require_media_type(request, JSON)
        body = await request.body()
        async with services.recall_admission.place(request.scope.get(SOURCE)):
            started, watch = time.perf_counter(), Stopwatch()
            with watch.stage("decode"):
                wanted = parse(RecallRequest, body)
            compressed = isinstance(wanted.report, CodeReport) and takes_gzip(request.headers.get("accept-encoding"))
            with watch.stage("aggregate"):
                answer = services.service.kept(wanted, compressed=compressed)
            if answer is not None:
                watch.stages_ms |= {"search": 0.0, "encode": 0.0}  # neither was needed
            else:
                answer = await asyncio.get_running_loop().run_in_executor(
                    services.recall_threads, partial(services.service.answer, wanted, watch, compressed=compressed)
                )
            total_ms = (time.perf_counter() - started) * 1_000
        services.latency.record("recall", watch.stages_ms, total_ms)
        headers = {"Server-Timing": server_timing(watch.stages_ms), "Cache-Control": "no-store"}
        if isinstance(wanted.report, CodeReport):
            headers["Vary"] = "Accept-Encoding"
        if compressed:
            headers["Content-Encoding"] = "gzip"
        return Response(answer, media_type=JSON, headers=headers)

    return routes
