"""The releases page: the list with measurements, the ranker in use, and rolling back the newest release."""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.federation.systems import reads_release
from backend.releases.between_rounds import use_ranker
from backend.releases.publish import roll_back
from protocol.ids import ReleaseId
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("backend.console", "words.toml")
RANKER_LIMIT = 80
"""Maximum length of a ranker's name."""


def router(controller: ConsoleController) -> APIRouter:
    releases = controller.services.releases
    routes = APIRouter()

    @routes.get("/releases")
    def listed(request: Request) -> Response:
        return controller.show(
            request, "releases", lambda: {"releases": releases.history(), "manifest": releases.current_manifest()}
        )

    @routes.get("/releases/ranker")
    def ask_for_ranker(request: Request, ranker: Annotated[str, Query(max_length=RANKER_LIMIT)]) -> Response:
        def question() -> Values:
            current = releases.require_current()
            before = current.default_ranker
            return {
                "question": WORDS("ranker_question", ranker=ranker),
                "message": WORDS("ranker", ranker=ranker, release=current.release, before=before),
                "action": WORDS("ranker_action", ranker=ranker),
                "fields": {"ranker": ranker},
                "back": "/console/releases",
            }

        return controller.show(request, "confirm", question)

    @routes.post("/releases/ranker")
    def rank_by(request: Request, ranker: Annotated[str, Form(max_length=RANKER_LIMIT)]) -> Response:
        return controller.do(
            request, lambda: use_ranker(releases, ranker, reads_release), "/console/releases", "ranker-changed"
        )

    @routes.get("/releases/{release}/roll-back")
    def ask_to_roll_back(request: Request, release: Annotated[ReleaseId, Path()]) -> Response:
        def question() -> Values:
            old, current = releases.require_kept(release), releases.require_current()
            return {
                "question": WORDS("roll_back_question", release=old.release),
                "message": WORDS("roll_back", release=old.release, current=current.release),
                "action": WORDS("roll_back_action", release=old.release),
                "back": "/console/releases",
            }

        return controller.show(request, "confirm", question)

    @routes.post("/releases/{release}/roll-back")
    def back_to(request: Request, release: Annotated[ReleaseId, Path()]) -> Response:
        return controller.do(request, lambda: roll_back(releases, release), "/console/releases", "rolled-back")

    return routes
