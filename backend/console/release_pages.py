"""Pages of releases: the list with what was measured of each, and rolling the newest back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.releases.publish import roll_back
from device_app.wire.ids import ReleaseId


def router(controller: ConsoleController) -> APIRouter:
    """Routes of the releases page."""
    releases = controller.services.releases
    routes = APIRouter()

    @routes.get("/releases")
    def listed(request: Request) -> Response:
        return controller.show(
            request, "releases", lambda: {"releases": releases.history(), "manifest": releases.current_manifest()}
        )

    @routes.get("/releases/{release}/roll-back")
    def ask_to_roll_back(request: Request, release: Annotated[ReleaseId, Path()]) -> Response:
        def question() -> Values:
            old, current = releases.require_kept(release), releases.require_current()
            return {
                "question": f"Go back to {old.release}?",
                "words": (
                    f"What {old.release} held is published again under a new number, and devices leave "
                    f"{current.release} at their next look. {current.release} stays in the list, and you can go "
                    "back to it as well. A training round that is under way ends without a result."
                ),
                "deed": f"Go back to {old.release}",
                "back": "/console/releases",
            }

        return controller.show(request, "confirm", question)

    @routes.post("/releases/{release}/roll-back")
    def back_to(request: Request, release: Annotated[ReleaseId, Path()]) -> Response:
        return controller.do(request, lambda: roll_back(releases, release), "/console/releases", "rolled-back")

    return routes
