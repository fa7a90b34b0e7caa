"""Routes of training rounds and of their secure sums for devices. Nothing here identifies a device beyond one round."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Request, Response

from backend.api.openapi import JSON, WITH_BODY, answers, parse, require_media_type, takes
from backend.errors import BodyTooLarge, InvalidRequest, ProtocolDiffers
from backend.federation.errors import CheckInsTooOften
from backend.federation.rounds.secure import MESSAGES, SMALL_BYTES
from backend.federation.rounds.selection import ClientAddresses
from backend.server.problems import problem_response
from backend.server.uploads import Upload
from protocol.ids import PROTOCOL_VERSION, Message, Pseudonym, RoundId
from protocol.rounds import CheckIn, OpenRounds, RoundStatus, SignedOffer, SumStage, UploadReceipt
from protocol.secagg import Agreements, Roster, Sharers, Shares, Survivors

if TYPE_CHECKING:
    from backend.composition import Services
    from backend.federation.rounds.coordinator import Coordinator


TENSORS_MEDIA_TYPE = "application/vnd.safetensors"


def router(services: Services) -> APIRouter:
    routes = APIRouter()
    _add_stages(routes, services)
    coordinator, uploads = services.coordinator, services.uploads

    @routes.get(
        "/v1/rounds/current",
        response_class=Response,
        response_model=None,
        responses=answers(also={200: OpenRounds, 204: None}),
    )
    def current() -> Response:
        found = coordinator.open_rounds()
        return _message_or_nothing(OpenRounds(rounds=tuple(found)) if found else None)

    @routes.post(
        "/v1/rounds/check-in",
        response_class=Response,
        response_model=None,
        responses=answers(*WITH_BODY, 429, also={200: SignedOffer, 204: None}),
        openapi_extra=takes(CheckIn),
    )
    async def check_in(request: Request) -> Response:
        require_media_type(request, JSON)
        message = parse(CheckIn, await request.body())
        if message.protocol != PROTOCOL_VERSION:
            raise ProtocolDiffers
        try:
            offer = await uploads.run(_check_in, services, message, source_of(request, coordinator.addresses))
        except CheckInsTooOften as refused:
            return problem_response(refused, headers={"Retry-After": str(math.ceil(refused.wait_sec))})
        return _message_or_nothing(offer)

    @routes.put(
        "/v1/rounds/{round_id}/updates/{pseudonym}",
        responses=answers(*WITH_BODY, 403, 404, 409),
        openapi_extra=takes(TENSORS_MEDIA_TYPE),
    )
    async def upload(
        request: Request, round_id: Annotated[RoundId, Path()], pseudonym: Annotated[Pseudonym, Path()]
    ) -> UploadReceipt:
        require_media_type(request, TENSORS_MEDIA_TYPE)
        limit_bytes = await uploads.run(coordinator.plain.limit_bytes, round_id, pseudonym, declared_bytes(request))
        refuse_declared(request, limit_bytes)
        async with uploads.receive(request, (round_id, pseudonym), limit_bytes) as upload:
            return await uploads.run(_accept, coordinator, round_id, pseudonym, upload)

    @routes.get("/v1/rounds/{round_id}", responses=answers(404, 422))
    def status(round_id: Annotated[RoundId, Path()]) -> RoundStatus:
        return coordinator.status(round_id)

    return routes


def source_of(request: Request, addresses: ClientAddresses | None) -> str | None:
    """A keyed hash of the request's network address; None if addresses are not limited."""
    if addresses is None:
        return None
    peer = None if request.client is None else request.client.host
    return addresses.source(peer, request.headers.getlist("x-forwarded-for"))


def declared_bytes(request: Request) -> int | None:
    """The declared length of the body; None for a chunked body."""
    declared = request.headers.get("content-length", "")
    return int(declared) if declared.isdecimal() and declared.isascii() else None


def refuse_declared(request: Request, limit_bytes: int) -> None:
    """Raise BodyTooLarge if the body's declared length exceeds the limit."""
    declared = declared_bytes(request)
    if declared is not None and declared > limit_bytes:
        raise BodyTooLarge(limit_bytes)


def require_length(request: Request, size_bytes: int) -> None:
    """Raise BodyTooLarge or InvalidRequest if the body's declared length differs from this size."""
    refuse_declared(request, size_bytes)
    if declared_bytes(request) not in (None, size_bytes):
        limit = f"exactly {size_bytes} bytes"
        raise InvalidRequest(f"Content-Length: {limit}.", field="Content-Length", limit=limit)


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """Read the body, stopping once it exceeds the limit. Raises BodyTooLarge."""
    refuse_declared(request, limit_bytes)
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > limit_bytes:
            raise BodyTooLarge(limit_bytes)
    return bytes(parts)


def _check_in(services: Services, message: CheckIn, source: str | None) -> SignedOffer | None:
    """Sign the offer in this thread and not on the event loop, since the signing key is looked up in the database."""
    offer = services.coordinator.check_in(message, source)
    return None if offer is None else services.releases.sign_offer(offer)


def _accept(coordinator: Coordinator, round_id: RoundId, pseudonym: Pseudonym, upload: Upload) -> UploadReceipt:
    return coordinator.plain.accept(round_id, pseudonym, upload.path.read_bytes())


def _message_or_nothing(message: Message | None) -> Response:
    """The message as JSON, or an empty 204; neither may be cached."""
    headers = {"Cache-Control": "no-store"}
    if message is None:
        return Response(status_code=204, headers=headers)
    return Response(message.model_dump_json(), media_type=JSON, headers=headers)


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
"""Maximum declared length of a body that is read from any client. Before a longer one is read, the server checks that
this member may send it.
"""


def _add_stages(routes: APIRouter, services: Services) -> None:
    """Add the routes of the stages of secure sums: a device sends a message, and later polls for the stage's answer."""
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
