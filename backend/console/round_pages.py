"""The rounds page: start, watch and review rounds, and prepare models for them.

A refused form keeps its values, and errors use the page's labels.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Path, Query, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.console.purposes import backfill_shown, purposes, usual_seconds
from backend.console.quality_pages import SHOWN, drawn, state_of
from backend.federation.errors import RoundImpossible
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.rounds.opening import COHORT_DEFAULT, COHORT_LIMIT, MINIMUM_DEFAULT, SECONDS_LIMIT, minimum_of
from backend.federation.rounds.queue import CANCELLED, NUMBER_LIMIT
from backend.federation.rounds.records import UNDER_WAY, CheckIns
from backend.federation.rounds.scheduling import EVERY_MINUTES_LIMIT, Schedule
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems import full_name
from backend.federation.systems.composition import AGGREGATIONS, PROTECTIONS
from protocol.fleet_figures import FleetFigures, RoundOfFleet, read_fleet_figures
from protocol.formatting import number, plural, size
from protocol.ids import RoundId
from protocol.rounds import QueuedRound, RoundStatus
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("backend.console", "words.toml")


def refused_message(coordinator: Coordinator, status: RoundStatus, refused: int) -> str:
    """A text on check-ins refused because of their address; empty if there were none."""
    if not refused or coordinator.addresses is None:
        return ""
    rules = coordinator.addresses.rules
    hint = "" if rules.proxies else WORDS("refused_proxies")
    lied = WORDS("refused_lied", round=status.follows) if status.follows else ""
    return WORDS("refused", refused=refused, places=rules.places, lied=lied, hint=hint)


def ended_messages(status: RoundStatus, found: CheckIns) -> tuple[str, ...]:
    """Texts on an ended round: which check-ins got no place, and why it failed; empty for a round in progress."""
    if status.state not in ("applied", "failed"):
        return ()
    messages, turned_away = [], WORDS.table("turned_away")
    if found.polls is not None:
        messages.append(WORDS("looked", requests=plural(found.polls, "request")))
    away = [WORDS("away_one", count=count, why=turned_away[why]) for why, count in found.turned_away.items()]
    if found.address:
        away.append(WORDS("away_address", count=found.address))
    if away:
        messages.append(WORDS("away", reasons=", ".join(away)))
    if status.state == "applied":
        return tuple(messages)
    devices, updates = plural(status.joined, "device"), plural(status.uploaded, "update")
    turnout = WORDS("came", devices=devices, updates=updates, needed=status.cohort_minimum)
    messages.append(turnout + (WORDS("came_to_sum") if status.stages == "sum" else ""))
    if status.joined < status.cohort_minimum:
        messages.append(WORDS("unknown"))
    elif status.uploaded < status.cohort_minimum:
        messages.append(WORDS("fell_silent"))
    return tuple(messages)


def fleet_message(found: RoundOfFleet | None) -> str:
    """A text on a demo's simulated devices in a round, by outcome; empty without a fleet's report."""
    if found is None:
        return ""
    texts = WORDS.table("became")
    order = [each for each in texts if each in found.became] + sorted(found.became.keys() - texts.keys())
    reasons = [WORDS("became_one", count=found.became[each], why=texts.get(each, each)) for each in order]
    return WORDS("became_all", devices=plural(found.devices, "simulated device"), reasons=", ".join(reasons))


def live_figures(status: RoundStatus) -> dict[str, str]:
    """The figures that change during a round, as the page formats them."""
    return {
        "joined": f"{status.joined:,}",
        "uploaded": f"{status.uploaded:,}",
        "received": size(status.received_bytes),
    }


def joined_message(status: RoundStatus) -> str:
    """A text on the devices that have a place, which may be more than are wanted."""
    if status.joined > status.cohort:
        return WORDS("joined_spare", joined=status.joined, wanted=status.cohort)
    return WORDS("joined", joined=status.joined, wanted=status.cohort)


def steps(status: RoundStatus) -> list[tuple[str, str, str]]:
    """The stages of a round: (label, text, 'done' | 'now' | 'failed' | '')."""
    if status.stages == "sum":
        return sum_steps(status)
    published = WORDS("no_release_yet") if status.finished_at is None else WORDS("without_release")
    labels = (
        (WORDS("offered_stage"), joined_message(status)),
        (WORDS("received_stage"), WORDS("received", uploaded=status.uploaded, needed=status.cohort_minimum)),
        (WORDS("averaged_stage"), status.published or published),
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
        (WORDS("keys_stage"), joined_message(status)),
        (WORDS("shares_stage"), WORDS("shares")),
        (WORDS("masked_stage"), WORDS("received", uploaded=status.uploaded, needed=status.cohort_minimum)),
        (WORDS("opened_stage"), opened_message(status)),
    )
    if status.state == "failed":
        # Uploaded vectors show how far it got.
        place = 3 if status.uploaded >= status.cohort_minimum else 2 if status.uploaded else 0
        states = ["done"] * place + ["failed"] + [""] * (3 - place)
    else:
        order = {"open": 0, "keys": 0, "shares": 1, "masked": 2, "agree": 3, "unmask": 3}
        place = order.get(status.state, 4)
        states = ["done" if at < place else "now" if at == place else "" for at in range(4)]
    return [(label, words, state) for (label, words), state in zip(labels, states, strict=True)]


def opened_message(status: RoundStatus) -> str:
    """A text on an opened sum and its cost."""
    if status.survivors is None:
        return WORDS("not_opened_yet" if status.finished_at is None else "not_opened")
    cost = (
        WORDS("no_noise")
        if status.epsilon is None or status.delta is None
        else WORDS("noise", epsilon=status.epsilon, delta=status.delta)
    )
    if status.published is None:
        return WORDS("opened", devices=status.survivors, cost=cost)
    return WORDS("opened_published", release=status.published, devices=status.survivors, cost=cost)


def scheduled(schedule: Schedule) -> str:
    """A text on when the schedule opens rounds."""
    every = None if schedule.every_minutes is None else WORDS("every", minutes=number(schedule.every_minutes))
    waiting = None if schedule.waiting is None else WORDS("waiting", devices=schedule.waiting)
    return WORDS("waiting_and_every", waiting=waiting, every=every) if every and waiting else str(every or waiting)


CHOSEN = "small_ranker"
"""The form's default choice."""
LABELS = WORDS.table("round_labels")
FormText = Annotated[str, Form()]
"""Accepts any input: the form shows invalid input again, with the error."""


@dataclass(frozen=True)
class RoundForm:
    """An operator's input, as text."""

    system: FormText = CHOSEN
    protection: FormText = ""
    aggregation: FormText = ""
    cohort: FormText = str(COHORT_DEFAULT)
    cohort_minimum: FormText = str(minimum_of(COHORT_DEFAULT, None))
    seconds: FormText = ""
    every_minutes: FormText = ""
    waiting: FormText = ""

    def request(self) -> RoundRequest:
        """The requested round; an empty protection, aggregation or deadline means the usual one.

        Raises UnknownSystem, or RoundImpossible for an invalid number or combination.
        """
        system = self.system.strip()
        return RoundRequest(
            full_name(system, self.protection.strip() or None, self.aggregation.strip() or None),
            _integer("cohort", self.cohort),
            _integer("cohort_minimum", self.cohort_minimum),
            _number("seconds", self.seconds) if self.seconds.strip() else usual_seconds(system),
        )

    def schedule(self) -> Schedule:
        """The requested schedule. Raises as `request` does, and RoundImpossible for a value beyond its limits."""
        return Schedule(
            self.request(),
            _number("every_minutes", self.every_minutes) if self.every_minutes.strip() else None,
            _integer("waiting", self.waiting) if self.waiting.strip() else None,
        )


def _number(field: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as odd:
        raise RoundImpossible(f"{field} is not a number.", field=field, limit="a number") from odd


def _integer(field: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as odd:
        raise RoundImpossible(f"{field} is not a whole number.", field=field, limit="a whole number") from odd


ROUNDS = "/console/rounds"
SubmittedForm = Annotated[RoundForm, Depends()]


def router(controller: ConsoleController) -> APIRouter:
    """The routes of the rounds page.

    Its script reads `/rounds/live`, `/rounds/groups` and `/rounds/preparing`.
    """
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
            "protections": PROTECTIONS,
            "aggregations": tuple(AGGREGATIONS),
            "started": started or RoundForm(),
            "planned": planned or RoundForm(),
            "cohort_limit": COHORT_LIMIT,
            "cohort_default": COHORT_DEFAULT,
            "minimum_default": MINIMUM_DEFAULT,
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
            "waits_for_devices": services.settings.rounds_wait_for_devices,
            "polls_per_device": coordinator.polls.per_device,
            "minutes_limit": EVERY_MINUTES_LIMIT,
            "spending": coordinator.spending(),
            "under_way": UNDER_WAY,
            "backfill": prepared,
            "preparing": {
                line.task: line.message for line in prepared.lines if line.stage not in ("published", "failed")
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
        def values() -> Values:
            current = coordinator.current() or next(iter(coordinator.history(1)), None)
            if named is not None:
                current = coordinator.status(named)
            if current is None:
                return {"round": None, "state": None, "figures": {}}
            return {"round": current.round, "state": current.state, "figures": live_figures(current)}

        return controller.answer(request, values)

    @routes.get("/rounds/groups")
    def groups(request: Request) -> Response:
        return controller.answer(request, lambda: {"state": state_of(coordinator.group_moves(SHOWN)), "figures": {}})

    @routes.get("/rounds/preparing")
    def preparing(request: Request) -> Response:
        def values() -> Values:
            shown = backfill_shown(backfill.status())
            return {"state": shown.state, "figures": shown.figures()}

        return controller.answer(request, values)

    @routes.post("/rounds")
    def start(request: Request, form: SubmittedForm) -> Response:
        return controller.do(
            request,
            lambda: coordinator.open_or_queue(form.request()),
            ROUNDS,
            lambda done: "queued" if isinstance(done, QueuedRound) else "opened",
            place="round",
            labels=LABELS,
            again=lambda problem, status: page(request, problem, status, started=form),
        )

    @routes.post("/rounds/prepare")
    def prepare(request: Request, ranker: Annotated[str, Form(max_length=80)], form: SubmittedForm) -> Response:
        return controller.do(
            request,
            lambda: backfill.start(ranker),
            ROUNDS,
            "preparing",
            place="preparing",
            again=lambda problem, status: page(request, problem, status, started=form),
        )

    @routes.post("/rounds/pause")
    def pause(request: Request) -> Response:
        return controller.do(request, coordinator.scheduler.pause, ROUNDS, "paused")

    @routes.post("/rounds/resume")
    def resume(request: Request) -> Response:
        return controller.do(request, coordinator.scheduler.resume, ROUNDS, "resumed")

    @routes.post("/rounds/schedule")
    def schedule(request: Request, form: SubmittedForm) -> Response:
        return controller.do(
            request,
            lambda: coordinator.scheduler.set(form.schedule()),
            ROUNDS,
            "scheduled",
            place="schedule",
            labels=LABELS,
            again=lambda problem, status: page(request, problem, status, planned=form),
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
                "message": WORDS("take_out"),
                "action": WORDS("take_out_action"),
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
                "message": WORDS("cancel", joined=status.joined, uploaded=status.uploaded),
                "action": WORDS("cancel_action", round=status.round),
                "back": ROUNDS,
            }

        return controller.show(request, "confirm", question)

    @routes.post("/rounds/{round_id}/cancel")
    def cancel(request: Request, round_id: Annotated[RoundId, Path()]) -> Response:
        return controller.do(request, lambda: coordinator.cancel(round_id), ROUNDS, "cancelled")

    return routes


def _became(fleet: FleetFigures | None, status: RoundStatus) -> str:
    return fleet_message(fleet.round(status.round) if fleet else None)


def _shown(coordinator: Coordinator, status: RoundStatus, fleet: FleetFigures | None) -> Values:
    """A round's values: its status, why check-ins got no place, why it failed, and what a demo's devices did."""
    found = coordinator.check_ins(status.round)
    return {
        "status": status,
        "refused": refused_message(coordinator, status, found.address),
        "ended": ended_messages(status, found),
        "became": _became(fleet, status),
    }
