"""GET /v1/news/front and POST /v1/news/bodies, which reveal nothing about a reader beyond the returned list."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from backend.api.openapi import JSON, WITH_BODY, answers, parse, require_media_type, takes
from backend.recall.service import compress
from backend.server.request_limits import SOURCE, takes_gzip
from backend.server.shared_answers import FOR_ALL
from protocol.news import BodiesAnswer, BodiesRequest, NewsBody
from protocol.recall import CANDIDATES_LIMIT, DEFAULT_LIST_LENGTH, DefaultListAnswer

if TYPE_CHECKING:
    from backend.composition import Services

ETAG_LIMIT = 80
SINCE = "The ETag of the list that the device has; the answer is then its changes since, if the server remembers it."


def router(services: Services) -> APIRouter:
    routes = APIRouter()

    compressed = lru_cache(maxsize=32)(compress)

    @routes.get(
        "/v1/news/front", response_class=Response, responses=answers(422, also={200: DefaultListAnswer, 304: None})
    )
    async def default_list(
        request: Request,
        limit: Annotated[int, Query(ge=1, le=CANDIDATES_LIMIT)] = DEFAULT_LIST_LENGTH,
        since: Annotated[str | None, Query(max_length=ETAG_LIMIT, description=SINCE)] = None,
    ) -> Response:
        started = time.perf_counter()
        name, answer = await run_in_threadpool(services.service.default_list, limit, since)
        headers = {"ETag": f'"{name}"', "Cache-Control": FOR_ALL, "Vary": "Accept-Encoding"}
        if takes_gzip(request.headers.get("accept-encoding")):
            answer = await run_in_threadpool(compressed, answer)
            headers["Content-Encoding"] = "gzip"
        services.latency.record("front", {}, (time.perf_counter() - started) * 1_000)
        return Response(answer, media_type=JSON, headers=headers)

    @routes.post(
        "/v1/news/bodies",
        response_class=Response,
        responses=answers(*WITH_BODY, also={200: BodiesAnswer}),
        openapi_extra=takes(BodiesRequest),
    )
    async def bodies(request: Request) -> Response:
        require_media_type(request, JSON)
        source = request.scope.get(SOURCE)
        services.bodies_admission.check(source)
        wanted = parse(BodiesRequest, await request.body())
        started = time.perf_counter()
        async with services.bodies_admission.place(source):
            answer, headers = await run_in_threadpool(
                _bodies, services, wanted, takes_gzip(request.headers.get("accept-encoding"))
            )
        services.latency.record("bodies", {}, (time.perf_counter() - started) * 1_000)
        return Response(answer, media_type=JSON, headers={**headers, "Cache-Control": "no-store"})

    return routes


def _bodies(services: Services, wanted: BodiesRequest, squeeze: bool) -> tuple[bytes, dict[str, str]]:
    found = services.pool.bodies(wanted.ids)
    answer = BodiesAnswer(
        bodies=tuple(
            NewsBody(id=news_id, body=found[news_id]) for news_id in dict.fromkeys(wanted.ids) if news_id in found
        )
    )
    payload = answer.model_dump_json().encode()
    headers = {"Vary": "Accept-Encoding"}
    if squeeze:
        return compress(payload), {**headers, "Content-Encoding": "gzip"}
    return payload, headers
