"""The stages of a round that is a secure sum, as devices see them: a message in, and later the stage's answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Annotated

import anyio.from_thread
from fastapi import APIRouter, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from backend.api.reading import JSON, parse, require_media_type
from backend.api.rounds import read_body, refuse_declared
from backend.federation.secure_rounds import MESSAGES
from device_app.wire.ids import Pseudonym, RoundId
from device_app.wire.rounds import SumStage, UploadReceipt

if TYPE_CHECKING:
    from backend.composition import Services

VECTOR_MEDIA_TYPE = "application/octet-stream"
ANSWERED: tuple[SumStage, ...] = ("keys", "shares", "masked", "agree")
RETRY_AFTER_SEC = 1


def router(services: Services) -> APIRouter:
    """Routes of the stages."""
    routes = APIRouter()
    sums = services.coordinator.sums

    def take(stage: SumStage) -> None:
        @routes.put(f"/v1/rounds/{{round_id}}/{stage}/{{pseudonym}}")
        async def message(
            request: Request, round_id: Annotated[RoundId, Path()], pseudonym: Annotated[Pseudonym, Path()]
        ) -> UploadReceipt:
            require_media_type(request, JSON)
            limit_bytes = await run_in_threadpool(sums.limit_bytes, round_id, stage, pseudonym)
            body = await read_body(request, limit_bytes)
            read = parse(MESSAGES[stage], body)
            return await run_in_threadpool(sums.receive, round_id, stage, pseudonym, read, body)

    def tell(stage: SumStage) -> None:
        @routes.get(f"/v1/rounds/{{round_id}}/{stage}/{{pseudonym}}", response_model=None)
        def answer(round_id: Annotated[RoundId, Path()], pseudonym: Annotated[Pseudonym, Path()]) -> Response:
            found = sums.answer(round_id, stage, pseudonym)
            headers = {"Cache-Control": "no-store"}
            if found is None:
                return Response(status_code=204, headers=headers | {"Retry-After": str(RETRY_AFTER_SEC)})
            return Response(found.model_dump_json(), media_type=JSON, headers=headers)

    for stage in MESSAGES:
        take(stage)
    for stage in ANSWERED:
        tell(stage)

    @routes.put("/v1/rounds/{round_id}/masked/{pseudonym}")
    async def masked(
        request: Request, round_id: Annotated[RoundId, Path()], pseudonym: Annotated[Pseudonym, Path()]
    ) -> UploadReceipt:
        require_media_type(request, VECTOR_MEDIA_TYPE)
        refuse_declared(request, await run_in_threadpool(sums.limit_bytes, round_id, "masked", pseudonym))
        return await run_in_threadpool(sums.receive_masked, round_id, pseudonym, _chunks(request.stream()))

    return routes


def _chunks(stream: AsyncIterator[bytes]) -> Iterator[bytes]:
    """A body as it comes in, for a worker thread: never more of it in memory than one chunk."""

    async def following() -> bytes | None:
        return await anext(stream, None)

    while (chunk := anyio.from_thread.run(following)) is not None:
        yield chunk
