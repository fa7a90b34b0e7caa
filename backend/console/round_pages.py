"""Rounds: start one, watch its stages, look at those before."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.federation.errors import RoundImpossible
from backend.federation.protections.registry import resolve
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.rounds.opening import COHORT_DEFAULT, COHORT_LIMIT, SECONDS_LIMIT, minimum_of
from backend.federation.rounds.scheduling import EVERY_MINUTES_LIMIT, Schedule
from backend.federation.rounds.states import UNDER_WAY
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import SYSTEMS
from device_app.figures import number, size
from device_app.wire.ids import RoundId
from device_app.wire.protections import Protection
from device_app.wire.rounds import RoundStatus

CHOSEN = "small_ranker_secure"
"""What the form offers first."""


def router(controller: ConsoleController) -> APIRouter:
    """Routes of the rounds page; `/rounds/live` is what its script reads."""
    coordinator = controller.services.coordinator
    routes = APIRouter()

    @routes.get("/rounds")
    def rounds(request: Request) -> Response:
        def view() -> Values:
            history = coordinator.history()
            current = coordinator.current() or next(iter(history), None)
            return {
                "systems": SYSTEMS,
                "cohort_limit": COHORT_LIMIT,
                "cohort_default": COHORT_DEFAULT,
                "minimum_default": minimum_of(COHORT_DEFAULT, None),
                "seconds_limit": SECONDS_LIMIT,
                "current": current,
                "refused": "" if current is None else refused_words(coordinator, current),
                "history": history,
                "steps": steps,
                "chosen": CHOSEN,
                "protected": protected,
                "scheduled": scheduled,
                "timings": coordinator.scheduler.timings(),
                "waiting": coordinator.polls.waiting(),
                "minutes_limit": EVERY_MINUTES_LIMIT,
                "spending": coordinator.spending(),
                "under_way": UNDER_WAY,
            }

        return controller.show(request, "rounds", view)

    @routes.get("/rounds/live")
    def live(request: Request) -> Response:
        def view() -> Values:
            current = coordinator.current() or next(iter(coordinator.history(1)), None)
            if current is None:
                return {"round": None, "state": None, "figures": {}}
            return {"round": current.round, "state": current.state, "figures": live_figures(current)}

        return controller.tell(request, view)

    @routes.post("/rounds")
    def start(
        request: Request,
        system: Annotated[str, Form(max_length=80)],
        cohort: Annotated[int, Form()],
        cohort_minimum: Annotated[int, Form()],
        seconds: Annotated[float, Form()],
    ) -> Response:
        def deed() -> object:
            return coordinator.open_round(system, cohort=cohort, cohort_minimum=cohort_minimum, seconds=seconds)

        return controller.do(request, deed, "/console/rounds", "opened")

    @routes.post("/rounds/pause")
    def pause(request: Request) -> Response:
        return controller.do(request, coordinator.scheduler.pause, "/console/rounds", "paused")

    @routes.post("/rounds/resume")
    def resume(request: Request) -> Response:
        return controller.do(request, coordinator.scheduler.resume, "/console/rounds", "resumed")

    @routes.post("/rounds/schedule")
    def schedule(
        request: Request,
        system: Annotated[str, Form(max_length=80)],
        cohort: Annotated[int, Form()],
        cohort_minimum: Annotated[int, Form()],
        seconds: Annotated[float, Form()],
        every_minutes: Annotated[str, Form(max_length=20)] = "",
        waiting: Annotated[str, Form(max_length=20)] = "",
    ) -> Response:
        def deed() -> object:
            order = RoundRequest(system, cohort, cohort_minimum, seconds)
            every, many = _number("every_minutes", every_minutes), _number("waiting", waiting)
            return coordinator.scheduler.set(Schedule(order, every, None if many is None else int(many)))

        return controller.do(request, deed, "/console/rounds", "scheduled")

    @routes.post("/rounds/unschedule")
    def unschedule(request: Request) -> Response:
        return controller.do(request, lambda: coordinator.scheduler.set(None), "/console/rounds", "unscheduled")

    @routes.post("/rounds/{round_id}/cancel")
    def cancel(request: Request, round_id: Annotated[RoundId, Path()]) -> Response:
        return controller.do(request, lambda: coordinator.cancel(round_id), "/console/rounds", "cancelled")

    return routes


def refused_words(coordinator: Coordinator, status: RoundStatus) -> str:
    """What became of check-ins from addresses that had their share of a round's places, or get none in a retry; empty
    where there were none."""
    refused = coordinator.places_refused(status.round)
    if not refused or coordinator.addresses is None:
        return ""
    rules = coordinator.addresses.rules
    hint = "" if rules.proxies else " Behind a proxy all devices look like one address: name it in trusted_proxies."
    lied = f" or a member from there lied in {status.follows}" if status.follows else ""
    return (
        f"{refused:,} check-ins got no place, since their address had {rules.places:,} already (setting "
        f"places_per_address){lied}.{hint}"
    )


def live_figures(status: RoundStatus) -> dict[str, str]:
    """The figures that change while a round is under way, as the page writes them."""
    return {
        "joined": f"{status.joined:,}",
        "uploaded": f"{status.uploaded:,}",
        "received": size(status.received_bytes),
    }


def steps(status: RoundStatus) -> list[tuple[str, str, str]]:
    """The stages of a round: (label, words, 'done' | 'now' | 'failed' | '')."""
    if status.stages == "sum":
        return sum_steps(status)
    published = "no release yet" if status.finished_at is None else "no release"
    labels = (
        ("Places offered", f"{status.joined:,} joined of {status.cohort:,} wanted"),
        ("Updates received", f"{status.uploaded:,} in, at least {status.cohort_minimum:,} needed"),
        ("Averaged and concluded", status.published or published),
    )
    states = {
        "open": ("now", "", ""),
        "updates": ("done", "now", ""),
        "applied": ("done", "done", "done"),
        "failed": ("done" if status.joined else "failed", "failed" if status.joined else "", ""),
    }[status.state]
    return [(label, words, state) for (label, words), state in zip(labels, states, strict=True)]


def sum_steps(status: RoundStatus) -> list[tuple[str, str, str]]:
    """The stages of a secure sum."""
    labels = (
        ("Keys advertised", f"{status.joined:,} joined of {status.cohort:,} wanted"),
        ("Shares of keys exchanged", "encrypted between the devices"),
        ("Masked vectors added", f"{status.uploaded:,} in, at least {status.cohort_minimum:,} needed"),
        ("Sum opened and concluded", opened_words(status)),
    )
    if status.state == "failed":
        # Vectors are the last thing that shows how far it came.
        place = 3 if status.uploaded >= status.cohort_minimum else 2 if status.uploaded else 0
        states = ["done"] * place + ["failed"] + [""] * (3 - place)
    else:
        order = {"open": 0, "keys": 0, "shares": 1, "masked": 2, "agree": 3, "unmask": 3}
        place = order.get(status.state, 4)
        states = ["done" if at < place else "now" if at == place else "" for at in range(4)]
    return [(label, words, state) for (label, words), state in zip(labels, states, strict=True)]


def opened_words(status: RoundStatus) -> str:
    """What an opened sum was and cost, in words."""
    if status.survivors is None:
        return "nothing is opened yet" if status.finished_at is None else "nothing was opened"
    cost = (
        "no noise inside: no epsilon bounds what it tells"
        if status.epsilon is None or status.delta is None
        else f"epsilon {status.epsilon:.3g} at delta {status.delta:g}"
    )
    published = "" if status.published is None else f"{status.published}: "
    return f"{published}the sum of {status.survivors:,} devices, {cost}"


def protected(protection: Protection) -> str:
    """What a device does to what it sends, in a sentence or two."""
    return resolve(protection).describe(number)


def scheduled(schedule: Schedule) -> str:
    """When it opens rounds, in words."""
    every = None if schedule.every_minutes is None else f"every {number(schedule.every_minutes)} minutes"
    waiting = None if schedule.waiting is None else f"when about {schedule.waiting:,} devices wait"
    return f"{waiting}, and no oftener than {every}" if every and waiting else str(every or waiting)


def _number(field: str, text: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError as odd:
        raise RoundImpossible(f"{field} is no number.", field=field, limit="a number, or nothing") from odd
