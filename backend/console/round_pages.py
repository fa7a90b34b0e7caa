"""Rounds: start one, watch its stages, look at those before."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request
from fastapi.responses import Response

from backend.console import figures
from backend.console.room import Room, Values
from backend.federation.coordinator import COHORT_LIMIT, SECONDS_LIMIT
from backend.federation.systems import SYSTEMS
from device_app.wire.ids import RoundId
from device_app.wire.rounds import RoundStatus


def router(room: Room) -> APIRouter:
    """Routes of the rounds page; `/rounds/live` is what its script reads."""
    coordinator = room.services.coordinator
    routes = APIRouter()

    @routes.get("/rounds")
    def rounds(request: Request) -> Response:
        def view() -> Values:
            history = coordinator.history()
            return {
                "systems": SYSTEMS,
                "cohort_limit": COHORT_LIMIT,
                "seconds_limit": SECONDS_LIMIT,
                "current": coordinator.current() or next(iter(history), None),
                "history": history,
                "steps": steps,
            }

        return room.show(request, "rounds", view)

    @routes.get("/rounds/live")
    def live(request: Request) -> Response:
        def view() -> Values:
            current = coordinator.current() or next(iter(coordinator.history(1)), None)
            if current is None:
                return {"round": None, "state": None, "figures": {}}
            return {"round": current.round, "state": current.state, "figures": live_figures(current)}

        return room.tell(request, view)

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

        return room.do(request, deed, "/console/rounds", "opened")

    @routes.post("/rounds/{round_id}/cancel")
    def cancel(request: Request, round_id: Annotated[RoundId, Path()]) -> Response:
        return room.do(request, lambda: coordinator.cancel(round_id), "/console/rounds", "cancelled")

    return routes


def live_figures(status: RoundStatus) -> dict[str, str]:
    """The figures that change while a round is under way, as the page writes them."""
    return {
        "joined": f"{status.joined:,}",
        "uploaded": f"{status.uploaded:,}",
        "received": figures.size(status.received_bytes),
    }


def steps(status: RoundStatus) -> list[tuple[str, str, str]]:
    """The stages of a round: (label, words, 'done' | 'now' | 'failed' | '')."""
    labels = (
        ("Places offered", f"{status.joined:,} joined of {status.cohort:,} wanted"),
        ("Updates received", f"{status.uploaded:,} in, at least {status.cohort_minimum:,} needed"),
        ("Averaged and published", status.published or "no release yet"),
    )
    states = {
        "open": ("now", "", ""),
        "updates": ("done", "now", ""),
        "applied": ("done", "done", "done"),
        "failed": ("done" if status.joined else "failed", "failed" if status.joined else "", ""),
    }[status.state]
    return [(label, words, state) for (label, words), state in zip(labels, states, strict=True)]
