"""What training has done to quality: the gate's scores of releases, what a demo's simulated readers tell of them, and
the curves that the bench last measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.federation.gate_scores import Score
from backend.measurements.curves import CurveDrawing, drawing, measured, of_curve
from backend.measurements.published import published
from device_app.fleet_figures import FleetFigures, TasteCurve, read_fleet_figures
from device_app.prose import Prose

WORDS = Prose("backend.console", "words.toml")

INTERVAL = 1.96
TASTES = WORDS.pairs("tastes")


@dataclass(frozen=True)
class TasteView:
    """A measure of the simulated readers' tastes as the page shows it; line says what it is."""

    curve: TasteCurve
    drawing: CurveDrawing
    line: str


def of_tastes(found: FleetFigures | None) -> list[TasteView]:
    """Every measure that a demo's fleet told, first release first; none without a fleet."""
    views = []
    for curve in found.curves if found else ():
        name, line = TASTES.get(curve.measure, (curve.measure, ""))
        rows = [(each.release, each.gain, each.low, each.high) for each in curve.points]
        if rows:
            views.append(TasteView(curve, drawing(name, rows), line))
    return views


def of_scores(found: Sequence[Score]) -> CurveDrawing | None:
    """What the gate has found, oldest first; None before its first verdict."""
    if not found:
        return None
    drawn = drawing(
        WORDS("gain"),
        [
            (each.release, each.gain, each.gain - INTERVAL * each.error, each.gain + INTERVAL * each.error)
            for each in found
        ],
    )
    return replace(drawn, joined=False)


def router(controller: ConsoleController) -> APIRouter:
    """The quality page."""
    routes, services = APIRouter(), controller.services

    def told_by_fleet() -> FleetFigures | None:
        return read_fleet_figures(services.settings.fleet_figures)

    @routes.get("/quality/live")
    def live(request: Request) -> Response:
        return controller.tell(request, lambda: {"state": _state(told_by_fleet())})

    @routes.get("/quality")
    def quality(request: Request) -> Response:
        def view() -> Values:
            found, told, fleet = measured(), services.coordinator.scores(), told_by_fleet()
            return {
                "with_fleet": services.settings.fleet_figures is not None,
                "fleet": fleet,
                "fleet_state": _state(fleet),
                "tastes": of_tastes(fleet),
                "measured": found,
                "drawings": [of_curve(each) for each in found.curves] if found else [],
                "scores": told[::-1],
                "scored": of_scores(told),
                "published": published("bench-quality"),
            }

        return controller.show(request, "quality", view)

    return routes


def _state(fleet: FleetFigures | None) -> str:
    """What the page's script compares: another one once the fleet has told more."""
    points = sum(len(curve.points) for curve in fleet.curves) if fleet else 0
    return f"{points} points" if points else "waiting"
