"""POST /v1/recall."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from backend.api.reading import JSON, parse, require_media_type
from device_app.wire.recall import RecallRequest
from device_app.wire.timing import Stopwatch, server_timing

if TYPE_CHECKING:
    from backend.composition import Services


def router(services: Services) -> APIRouter:
    """The recall route.

    The event loop reads the body and hands it to a small pool of threads kept for recall: one hop for all five stages.
    FAISS and NumPy release the interpreter there, so the loop goes on; a slow upload or console page, which run in the
    framework's own pool, can't take recall's threads.
    """
    routes = APIRouter()

    def compute(body: bytes) -> tuple[bytes, Stopwatch]:
        watch = Stopwatch()
        with watch.stage("decode"):
            request = parse(RecallRequest, body)
        return services.desk.answer(request, watch), watch

    @routes.post("/v1/recall")
    async def recall(request: Request) -> Response:
        require_media_type(request, JSON)
        body = await request.body()
        started = time.perf_counter()
        answer, watch = await asyncio.get_running_loop().run_in_executor(services.recall_threads, compute, body)
        response = Response(
            answer,
            media_type=JSON,
            headers={"Server-Timing": server_timing(watch.stages_ms), "Cache-Control": "no-store"},
        )
        services.latency.record("recall", watch.stages_ms, (time.perf_counter() - started) * 1_000)
        return response

    return routes
