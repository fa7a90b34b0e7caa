"""Training rounds as devices see them. Nothing here knows a device beyond one round."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from backend.api.openapi import WITH_BODY, answers, describe, takes
from backend.api.reading import JSON, parse, require_media_type
from backend.errors import BodyTooLarge, InvalidRequest, ProtocolDiffers
from backend.federation.errors import CheckInsTooOften
from backend.federation.rounds.client_addresses import ClientAddresses
from backend.problems import problem_response
from backend.uploads import Upload
from device_app.wire.ids import PROTOCOL_VERSION, Message, Pseudonym, RoundId
from device_app.wire.offers import SignedOffer
from device_app.wire.rounds import OPEN_ROUNDS, CheckIn, OpenRounds, RoundStatus, UploadReceipt

if TYPE_CHECKING:
    from backend.composition import Services
    from backend.federation.rounds.coordinator import Coordinator

TENSORS_MEDIA_TYPE = "application/vnd.safetensors"


def router(services: Services) -> APIRouter:
    """The round routes."""
    routes = APIRouter()
    coordinator, uploads = services.coordinator, services.uploads

    @routes.get(
        "/v1/rounds/current",
        response_class=Response,
        response_model=None,
        responses=open_rounds_answers(),
    )
    def current(request: Request) -> Response:
        coordinator.polls.note(source_of(request, coordinator.addresses))
        found = coordinator.open_rounds()
        if found and OPEN_ROUNDS in request.headers.get("accept", ""):
            return _message_or_nothing(OpenRounds(rounds=tuple(found)), OPEN_ROUNDS)
        return _message_or_nothing(found[0] if found else None)

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
    """Where a request comes from, as a keyed hash; None where no address is bounded."""
    if addresses is None:
        return None
    peer = None if request.client is None else request.client.host
    return addresses.source(peer, request.headers.getlist("x-forwarded-for"))


def declared_bytes(request: Request) -> int | None:
    """How long the body says it is; None for one that comes in chunks."""
    declared = request.headers.get("content-length", "")
    return int(declared) if declared.isdecimal() and declared.isascii() else None


def refuse_declared(request: Request, limit_bytes: int) -> None:
    """Raises BodyTooLarge for a body that says itself that it passes the limit."""
    declared = declared_bytes(request)
    if declared is not None and declared > limit_bytes:
        raise BodyTooLarge(limit_bytes)


def require_length(request: Request, size_bytes: int) -> None:
    """Raises BodyTooLarge or InvalidRequest for a body that says itself that it isn't of this very size."""
    refuse_declared(request, size_bytes)
    if declared_bytes(request) not in (None, size_bytes):
        limit = f"exactly {size_bytes} bytes"
        raise InvalidRequest(f"Content-Length: {limit}.", field="Content-Length", limit=limit)


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """The body, given up as soon as it passes the limit. Raises BodyTooLarge."""
    refuse_declared(request, limit_bytes)
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > limit_bytes:
            raise BodyTooLarge(limit_bytes)
    return bytes(parts)


def _check_in(services: Services, message: CheckIn, source: str | None) -> SignedOffer | None:
    """Signed here and not on the event loop: which key signs is asked of the database."""
    offer = services.coordinator.check_in(message, source)
    return None if offer is None else services.releases.sign_offer(offer)


def _accept(coordinator: Coordinator, round_id: RoundId, pseudonym: Pseudonym, upload: Upload) -> UploadReceipt:
    return coordinator.plain.accept(round_id, pseudonym, upload.path.read_bytes())


def open_rounds_answers() -> dict[int | str, Any]:
    """Of GET /v1/rounds/current: one round, or all of them where that media type is accepted."""
    found = answers(also={200: RoundStatus, 204: None})
    found[200]["content"] = {OPEN_ROUNDS: {"schema": {"$ref": describe(OpenRounds)}}}
    return found


def _message_or_nothing(message: Message | None, media_type: str = JSON) -> Response:
    """The message as JSON, or an empty 204; neither is kept by any cache."""
    headers = {"Cache-Control": "no-store", "Vary": "Accept"}
    if message is None:
        return Response(status_code=204, headers=headers)
    return Response(message.model_dump_json(), media_type=media_type, headers=headers)
