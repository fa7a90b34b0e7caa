"""Routes of the stages of a secure sum: a device sends a message, and later polls for the stage's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Request, Response

from backend.api.openapi import JSON, WITH_BODY, answers, parse, require_media_type, takes
from backend.api.rounds import declared_bytes, read_body, require_length
from backend.federation.rounds.secure import MESSAGES, SMALL_BYTES
from protocol.ids import Message, Pseudonym, RoundId
from protocol.rounds import SumStage, UploadReceipt
from protocol.secagg import Agreements, Roster, Sharers, Shares, Survivors

if TYPE_CHECKING:
    from backend.composition import Services

VECTOR_MEDIA_TYPE = "application/octet-stream"
ANSWERED: Mapping[SumStage, type[Message]] = {
    "keys": Roster,
    "shares": Shares,
    "complaints": Sharers,
    "masked": Survivors,
    "agree": Agreements,
}
RETRY_AFTER_SEC = 1
READ_AT_ONCE_BYTES: Mapping[SumStage, int] = {
    "keys": SMALL_BYTES, "shares": 4 * SMALL_BYTES, "complaints": SMALL_BYTES, "agree": SMALL_BYTES,
    "unmask": 4 * SMALL_BYTES,
}  # fmt: skip
"""A body that declares a length up to this is read whoever sends it. Before a longer one is read, the server checks
that this member may send it."""


def router(services: Services) -> APIRouter:
    """The routes of the stages."""
    routes = APIRouter()
    sums, uploads = services.coordinator.sums, services.uploads

    def _receive(round_id: RoundId, stage: SumStage, pseudonym: Pseudonym, body: bytes) -> UploadReceipt:
        return sums.receive(round_id, stage, pseudonym, parse(MESSAGES[stage], body), body)

    def take(stage: SumStage) -> None:
        @routes.put(
            f"/v1/rounds/{{round_id}}/{stage}/{{pseudonym}}",
            responses=answers(*WITH_BODY, 403, 404, 409),
            openapi_extra=takes(MESSAGES[stage]),
        )
        async def message(
            request: Request, round_id: Annotated[RoundId, Path()], pseudonym: Annotated[Pseudonym, Path()]
        ) -> UploadReceipt:
            require_media_type(request, JSON)
            limit_bytes = READ_AT_ONCE_BYTES[stage]
            # The message is checked again anyway, so a separate check for a short one would only take longer.
            if (declared_bytes(request) or limit_bytes + 1) > limit_bytes:
                limit_bytes = await uploads.run(sums.limit_bytes, round_id, stage, pseudonym)
            body = await read_body(request, limit_bytes)
            return await uploads.run(_receive, round_id, stage, pseudonym, body)

    def tell(stage: SumStage) -> None:
        @routes.get(
            f"/v1/rounds/{{round_id}}/{stage}/{{pseudonym}}",
            response_class=Response,
            response_model=None,
            responses=answers(403, 404, 409, 422, also={200: ANSWERED[stage], 204: None}),
        )
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

    @routes.put(
        "/v1/rounds/{round_id}/masked/{pseudonym}",
        responses=answers(*WITH_BODY, 403, 404, 409),
        openapi_extra=takes(VECTOR_MEDIA_TYPE),
    )
    async def masked(
        request: Request, round_id: Annotated[RoundId, Path()], pseudonym: Annotated[Pseudonym, Path()]
    ) -> UploadReceipt:
        require_media_type(request, VECTOR_MEDIA_TYPE)
        size_bytes = await uploads.run(sums.limit_bytes, round_id, "masked", pseudonym)
        require_length(request, size_bytes)
        async with uploads.receive(request, (round_id, pseudonym), size_bytes) as upload:
            return await uploads.run(sums.receive_masked, round_id, pseudonym, upload.path, upload.sha256)

    return routes
