"""Rounds: start one by its purpose, prepare a model for it, watch its stages, look at those before."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Path, Query, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.console.group_moves import SHOWN, drawn, state_of
from backend.console.purposes import backfill_shown, purposes
from backend.console.round_form import LABELS, RoundForm
from backend.console.round_words import became_words, ended_words, live_figures, refused_words, scheduled, steps
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.rounds.opening import COHORT_LIMIT, SECONDS_LIMIT
from backend.federation.rounds.queue import CANCELLED, NUMBER_LIMIT
from backend.federation.rounds.scheduling import EVERY_MINUTES_LIMIT
from backend.federation.rounds.states import UNDER_WAY
from device_app.fleet_figures import FleetFigures, read_fleet_figures
from device_app.prose import Prose
from device_app.wire.ids import RoundId
from device_app.wire.rounds import QueuedRound, RoundStatus

WORDS = Prose("backend.console", "words.toml")

ROUNDS = "/console/rounds"
AskedForm = Annotated[RoundForm, Depends()]


def router(controller: ConsoleController) -> APIRouter:
    """Routes of the rounds page; `/rounds/live`, `/rounds/groups` and `/rounds/preparing` are what its script reads."""
    services = controller.services
    coordinator, backfill = services.coordinator, services.backfill
    routes = APIRouter()

    def view(started: RoundForm | None = None, planned: RoundForm | None = None) -> Values:
        prepared = backfill_shown(backfill.status())
        history = coordinator.history()
        open_rounds = coordinator.open_rounds()
        fleet = read_fleet_figures(services.settings.fleet_figures)
        shown = [_shown(coordinator, each, fleet) for each in open_rounds or history[:1]]
        moves = coordinator.group_moves(SHOWN)
        return {
            "moves": [drawn(each) for each in moves],
            "moves_state": state_of(moves),
            "purposes": purposes(services),
            "labels": LABELS,
            "started": started or RoundForm(),
            "planned": planned or RoundForm(),
            "cohort_limit": COHORT_LIMIT,
            "seconds_limit": SECONDS_LIMIT,
            "shown": shown,
            "is_open": bool(open_rounds),
            "queue": coordinator.queue.waiting(),
            "never_opened": coordinator.queue.never_opened(),
            "history": history,
            "became": {each.round: _became(fleet, each) for each in history},
            "steps": steps,
            "scheduled": scheduled,
            "opening": coordinator.scheduler.status(),
            "waiting": coordinator.polls.waiting(),
            "waiting_devices": coordinator.polls.devices(),
            "polls_per_device": coordinator.polls.per_device,
            "minutes_limit": EVERY_MINUTES_LIMIT,
            "spending": coordinator.spending(),
            "under_way": UNDER_WAY,
            "backfill": prepared,
            "preparing": {
                line.task: line.words for line in prepared.lines if line.stage not in ("published", "failed")
            },
        }

    def page(request: Request, problem: str, status: int, **kept: RoundForm) -> Response:
        return controller.renderer.page(
            request, "rounds", status_code=status, here=ROUNDS, **view(**kept) | {"problem": problem}
        )

    @routes.get("/rounds")
    def rounds(request: Request) -> Response:
        return controller.show(request, "rounds", view)

    @routes.get("/rounds/live")
    def live(request: Request, named: Annotated[RoundId | None, Query(alias="round")] = None) -> Response:
        def told() -> Values:
            current = coordinator.current() or next(iter(coordinator.history(1)), None)
            if named is not None:
                current = coordinator.status(named)
            if current is None:
                return {"round": None, "state": None, "figures": {}}
            return {"round": current.round, "state": current.state, "figures": live_figures(current)}

        return controller.tell(request, told)

    @routes.get("/rounds/groups")
    def groups(request: Request) -> Response:
        return controller.tell(request, lambda: {"state": state_of(coordinator.group_moves(SHOWN)), "figures": {}})

    @routes.get("/rounds/preparing")
    def preparing(request: Request) -> Response:
        def told() -> Values:
            shown = backfill_shown(backfill.status())
            return {"state": shown.state, "figures": shown.figures()}

        return controller.tell(request, told)

    @routes.post("/rounds")
    def start(request: Request, asked: AskedForm) -> Response:
        return controller.do(
            request,
            lambda: coordinator.open_or_queue(asked.request()),
            ROUNDS,
            lambda done: "queued" if isinstance(done, QueuedRound) else "opened",
            place="round",
            labels=LABELS,
            again=lambda problem, status: page(request, problem, status, started=asked),
        )

    @routes.post("/rounds/prepare")
    def prepare(request: Request, ranker: Annotated[str, Form(max_length=80)], asked: AskedForm) -> Response:
        return controller.do(
            request,
            lambda: backfill.start(ranker),
            ROUNDS,
            "preparing",
            place="preparing",
            again=lambda problem, status: page(request, problem, status, started=asked),
        )

    @routes.post("/rounds/pause")
    def pause(request: Request) -> Response:
        return controller.do(request, coordinator.scheduler.pause, ROUNDS, "paused")

    @routes.post("/rounds/resume")
    def resume(request: Request) -> Response:
        return controller.do(request, coordinator.scheduler.resume, ROUNDS, "resumed")

    @routes.post("/rounds/schedule")
    def schedule(request: Request, asked: AskedForm) -> Response:
        return controller.do(
            request,
            lambda: coordinator.scheduler.set(asked.schedule()),
            ROUNDS,
            "scheduled",
            place="schedule",
            labels=LABELS,
            again=lambda problem, status: page(request, problem, status, planned=asked),
        )

    @routes.post("/rounds/unschedule")
    def unschedule(request: Request) -> Response:
        return controller.do(request, lambda: coordinator.scheduler.set(None), ROUNDS, "unscheduled")

    @routes.get("/rounds/queue/{number}/cancel")
    def ask_to_take_out(request: Request, number: Annotated[int, Path(ge=1, le=NUMBER_LIMIT)]) -> Response:
        def question() -> Values:
            queued = coordinator.queue.get(number)
            return {
                "question": WORDS("take_out_question", system=queued.system),
                "words": WORDS("take_out"),
                "deed": WORDS("take_out_deed"),
                "back": ROUNDS,
            }

        return controller.show(request, "confirm", question)

    @routes.post("/rounds/queue/{number}/cancel")
    def take_out(request: Request, number: Annotated[int, Path(ge=1, le=NUMBER_LIMIT)]) -> Response:
        return controller.do(request, lambda: coordinator.queue.give_up(number, CANCELLED), ROUNDS, "taken-out")

    @routes.get("/rounds/{round_id}/cancel")
    def ask_to_cancel(request: Request, round_id: Annotated[RoundId, Path()]) -> Response:
        def question() -> Values:
            status = coordinator.status(round_id)
            return {
                "question": WORDS("cancel_question", round=status.round),
                "words": WORDS("cancel", joined=status.joined, uploaded=status.uploaded),
                "deed": WORDS("cancel_deed", round=status.round),
                "back": ROUNDS,
            }

        return controller.show(request, "confirm", question)

    @routes.post("/rounds/{round_id}/cancel")
    def cancel(request: Request, round_id: Annotated[RoundId, Path()]) -> Response:
        return controller.do(request, lambda: coordinator.cancel(round_id), ROUNDS, "cancelled")

    return routes


def _became(fleet: FleetFigures | None, status: RoundStatus) -> str:
    return became_words(fleet.round(status.round) if fleet else None)


def _shown(coordinator: Coordinator, status: RoundStatus, fleet: FleetFigures | None) -> Values:
    """A round and what is told of it: why check-ins got no place, why it failed, and what a demo's devices did."""
    found = coordinator.check_ins(status.round)
    return {
        "status": status,
        "refused": refused_words(coordinator, status, found.address),
        "ended": ended_words(status, found),
        "became": _became(fleet, status),
    }
