"""What training has done to quality: the gate's scores of releases, and the curves that the bench last measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.federation.scores import Score
from backend.measurements.curves import CurveDrawing, drawing, measured, of_curve
from backend.measurements.published import published
from device_app.prose import Prose

WORDS = Prose("backend.console", "words.toml")

INTERVAL = 1.96


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
    routes = APIRouter()

    @routes.get("/quality")
    def quality(request: Request) -> Response:
        def view() -> Values:
            found, told = measured(), controller.services.coordinator.scores()
            return {
                "measured": found,
                "drawings": [of_curve(each) for each in found.curves] if found else [],
                "scores": told[::-1],
                "scored": of_scores(told),
                "published": published("bench-quality"),
            }

        return controller.show(request, "quality", view)

    return routes
