"""The operator's routes, behind the token that lies in the data folder."""

from __future__ import annotations

import hmac
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Self

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field, model_validator
from starlette.concurrency import run_in_threadpool

from backend.api.openapi import WITH_BODY, answers, takes
from backend.api.reading import JSON, parse, require_media_type
from backend.backfill import BackfillTask
from backend.errors import NotSignedIn
from backend.federation.rounds.opening import COHORT_LIMIT, SECONDS_LIMIT, minimum_of, round_request
from backend.federation.rounds.queue import CANCELLED, NUMBER_LIMIT
from backend.federation.rounds.scheduling import EVERY_MINUTES_LIMIT, Schedule
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import SYSTEMS
from device_app.wire.ids import Message, RoundId
from device_app.wire.rounds import QueuedRound, RoundStatus

if TYPE_CHECKING:
    from backend.composition import Services

SCHEME = "bearer"


class OpenRound(Message):
    """POST /v1/admin/rounds. Without a minimum, 10 updates, or all of a smaller cohort, are enough at the deadline.

    Without cohort and participation the system says how many devices, or it is 60.
    """

    system: str = Field(max_length=80)
    cohort: int | None = Field(default=None, ge=1, le=COHORT_LIMIT)
    participation: float | None = Field(
        default=None, gt=0, le=1, description="Share of the devices that wait when the round opens: r."
    )
    cohort_minimum: int | None = Field(default=None, ge=1, le=COHORT_LIMIT)
    seconds: float = Field(gt=0, le=SECONDS_LIMIT)
    admission: float = Field(default=1.0, gt=0, le=1, description="Chance of each check-in to get a place.")

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.cohort is not None and self.participation is not None:
            raise ValueError("participation: a round has a cohort or a share of those that wait, not both")
        return self


class SetSchedule(Message):
    """PUT /v1/admin/timetable/schedule: a round every so many minutes, when so many devices wait, or both together."""

    system: str = Field(max_length=80)
    cohort: int = Field(ge=1, le=COHORT_LIMIT)
    cohort_minimum: int | None = Field(default=None, ge=1, le=COHORT_LIMIT)
    seconds: float = Field(gt=0, le=SECONDS_LIMIT)
    every_minutes: float | None = Field(default=None, gt=0, le=EVERY_MINUTES_LIMIT)
    waiting: int | None = Field(default=None, ge=1, le=COHORT_LIMIT)

    def minimum(self) -> int:
        """The cohort minimum that counts."""
        return minimum_of(self.cohort, self.cohort_minimum)


def is_operator(authorization: str, token: str) -> bool:
    """Whether an Authorization header holds the operator's token, in the same time for a wrong one."""
    scheme, _, shown = authorization.partition(" ")
    return hmac.compare_digest(shown.strip().encode(), token.encode()) and scheme.lower() == SCHEME


def router(services: Services) -> APIRouter:
    """The operator's routes."""

    def signed_in(request: Request) -> None:
        if not is_operator(request.headers.get("authorization", ""), services.admin_token):
            raise NotSignedIn

    routes = APIRouter(prefix="/v1/admin", dependencies=[Depends(signed_in)], responses=answers(401))
    coordinator = services.coordinator

    @routes.post(
        "/rounds",
        status_code=201,
        response_model=RoundStatus,
        responses=answers(*WITH_BODY, 404, 409, also={202: QueuedRound}),
        openapi_extra=takes(OpenRound),
    )
    async def open_round(request: Request) -> Response:
        """201 and the round, or 202 and its place in the queue: another one under way changes the same."""
        require_media_type(request, JSON)
        asked = parse(OpenRound, await request.body())
        found = await run_in_threadpool(coordinator.open_or_queue, round_request(SYSTEMS, **asked.model_dump()))
        status = 202 if isinstance(found, QueuedRound) else 201
        return Response(found.model_dump_json(by_alias=True), status_code=status, media_type=JSON)

    @routes.get("/queue")
    def queue() -> list[QueuedRound]:
        return coordinator.queue.waiting()

    @routes.get("/queue/{number}", responses=answers(404, 422))
    def queued(number: Annotated[int, Path(ge=1, le=NUMBER_LIMIT)]) -> QueuedRound:
        return coordinator.queue.get(number)

    @routes.post("/queue/{number}/cancel", responses=answers(404, 409, 422))
    def take_out(number: Annotated[int, Path(ge=1, le=NUMBER_LIMIT)]) -> QueuedRound:
        return coordinator.queue.give_up(number, CANCELLED)

    @routes.post("/rounds/{round_id}/cancel", responses=answers(404, 409, 422))
    def cancel(round_id: Annotated[RoundId, Path()]) -> RoundStatus:
        return coordinator.cancel(round_id)

    @routes.get("/rounds")
    def rounds() -> list[RoundStatus]:
        return coordinator.history()

    @routes.get("/preparation")
    def preparation() -> list[BackfillTask]:
        """What is prepared beside the server: done, at work and still to do."""
        return services.backfill.status()

    @routes.get("/timetable")
    def scheduler() -> dict[str, Any]:
        return asdict(coordinator.scheduler.status()) | {"waiting": coordinator.polls.waiting()}

    @routes.post("/timetable/pause")
    def pause() -> dict[str, Any]:
        return asdict(coordinator.scheduler.pause())

    @routes.post("/timetable/resume")
    def resume() -> dict[str, Any]:
        return asdict(coordinator.scheduler.resume())

    @routes.put("/timetable/schedule", responses=answers(*WITH_BODY, 404, 409), openapi_extra=takes(SetSchedule))
    async def schedule(request: Request) -> dict[str, Any]:
        require_media_type(request, JSON)
        asked = parse(SetSchedule, await request.body())
        wanted = RoundRequest(asked.system, asked.cohort, asked.minimum(), asked.seconds)
        schedule = Schedule(wanted, asked.every_minutes, asked.waiting)
        return asdict(await run_in_threadpool(coordinator.scheduler.set, schedule))

    @routes.delete("/timetable/schedule")
    def no_schedule() -> dict[str, Any]:
        return asdict(coordinator.scheduler.set(None))

    @routes.get("/account")
    def account() -> dict[str, Any]:
        return asdict(coordinator.spending())

    @routes.get("/releases")
    def releases() -> list[dict[str, Any]]:
        return [asdict(release) for release in services.releases.history()]

    @routes.get("/pool")
    def pool() -> dict[str, Any]:
        catalogue = services.live.current
        return asdict(services.pool.counts()) | {
            "catalogue": {
                "pool_version": catalogue.pool_version,
                "encoder": catalogue.encoder,
                "news": len(catalogue),
                "duplicates": catalogue.duplicates,
                "without_vector": catalogue.without_vector,
                "built_at": catalogue.built_at,
                "build_sec": catalogue.build_sec,
                "index": asdict(catalogue.status),
            }
        }

    @routes.get("/latency")
    def latency() -> dict[str, Any]:
        return {kind: figures.model_dump() for kind, figures in services.latency.summary().items()}

    return routes
