"""The operator's API routes, protected by the token in the data folder."""

from __future__ import annotations

import hmac
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Self

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field, model_validator
from starlette.concurrency import run_in_threadpool

from backend.api.openapi import JSON, WITH_BODY, answers, parse, require_media_type, takes
from backend.errors import NotSignedIn
from backend.federation.errors import UnknownSystem
from backend.federation.rounds.opening import COHORT_LIMIT, SECONDS_LIMIT, minimum_of, round_request
from backend.federation.rounds.queue import CANCELLED, NUMBER_LIMIT
from backend.federation.rounds.scheduling import EVERY_MINUTES_LIMIT, Schedule
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import COMPOSED, full_name
from backend.setup.backfill import BackfillTask
from protocol.ids import Message, RoundId
from protocol.rounds import QueuedRound, RoundStatus

if TYPE_CHECKING:
    from backend.composition import Services

SCHEME = "bearer"


def _named(system: str, protection: str | None, aggregation: str | None) -> str:
    """Return the full name of a round's system. A system that can't be combined here is left to the rest of this
    server.
    """
    try:
        return full_name(system, protection, aggregation)
    except UnknownSystem:
        if protection is not None or aggregation is not None:
            raise
        return system


class OpenRound(Message):
    """Body of POST /v1/admin/rounds.

    Without a minimum, 10 updates, or all of a smaller cohort, suffice at the deadline. Without cohort and
    participation, the system determines the number of devices, or it is 60.
    """

    system: str = Field(max_length=80, description="A system or preset, or a full name: small_ranker/local/mean.")
    protection: str | None = Field(default=None, max_length=80, description="local, secure, exact, ...; the usual one.")
    aggregation: str | None = Field(default=None, max_length=80, description="mean, median, ...; the usual one.")
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
            raise ValueError("participation: give either a cohort or a share of the waiting devices, not both")
        return self

    def request(self) -> RoundRequest:
        """Return the requested round. Raises UnknownSystem, or RoundImpossible for parts that can't be combined."""
        system = _named(self.system, self.protection, self.aggregation)
        size = self.model_dump(exclude={"system", "protection", "aggregation"})
        return round_request(COMPOSED, system, **size)


class SetSchedule(Message):
    """Body of PUT /v1/admin/timetable/schedule: a round at an interval, when enough devices wait, or when both hold."""

    system: str = Field(max_length=80, description="A system or preset, or a full name: small_ranker/local/mean.")
    protection: str | None = Field(default=None, max_length=80, description="local, secure, exact, ...; the usual one.")
    aggregation: str | None = Field(default=None, max_length=80, description="mean, median, ...; the usual one.")
    cohort: int = Field(ge=1, le=COHORT_LIMIT)
    cohort_minimum: int | None = Field(default=None, ge=1, le=COHORT_LIMIT)
    seconds: float = Field(gt=0, le=SECONDS_LIMIT)
    every_minutes: float | None = Field(default=None, gt=0, le=EVERY_MINUTES_LIMIT)
    waiting: int | None = Field(default=None, ge=1, le=COHORT_LIMIT)

    def minimum(self) -> int:
        """The cohort minimum that applies."""
        return minimum_of(self.cohort, self.cohort_minimum)


def is_operator(authorization: str, token: str) -> bool:
    """Return whether an Authorization header holds the operator's token; takes constant time."""
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
        """201 and the round, or 202 and its place in the queue if another round changes the same models."""
        require_media_type(request, JSON)
        body = parse(OpenRound, await request.body())
        found = await run_in_threadpool(coordinator.open_or_queue, body.request())
        status = 202 if isinstance(found, QueuedRound) else 201
        return Response(found.model_dump_json(), status_code=status, media_type=JSON)

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
        """What is prepared in the background: finished, running and pending tasks."""
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
        body = parse(SetSchedule, await request.body())
        system = _named(body.system, body.protection, body.aggregation)
        wanted = RoundRequest(system, body.cohort, body.minimum(), body.seconds)
        schedule = Schedule(wanted, body.every_minutes, body.waiting)
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
