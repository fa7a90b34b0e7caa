"""Routes of the Interests page and the reading history."""

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from device_app.pages.openapi import form, page
from device_app.pages.renderer import BACK_CHARS, PageRenderer, RowId, see_other


def router(renderer: PageRenderer) -> APIRouter:
    """Return the routes of the Interests page and the reading history."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/interests", **page())
    def interests(request: Request) -> Response:
        clusters = device.interests.clusters() if device.release() is not None else ()
        return renderer.page(request, "interests", clusters=clusters)

    @routes.post("/interests/{key}/name", **form())
    def rename(key: RowId, name: Annotated[str, Form(min_length=1, max_length=60)]) -> Response:
        device.interests.rename(key, name)
        return see_other("/interests", "renamed")

    @routes.post("/interests/{key}/mute", **form())
    def mute(key: RowId, muted: Annotated[Literal["yes", "no"], Form()]) -> Response:
        device.interests.mute(key, muted == "yes")
        return see_other("/interests", "muted" if muted == "yes" else "unmuted")

    @routes.post("/interests/{key}/forget", **form())
    def forget(key: RowId) -> Response:
        device.interests.forget(key)
        return see_other("/interests", "forgotten")

    @routes.get("/interests/history", **page())
    def history(
        request: Request,
        q: Annotated[str, Query(max_length=200)] = "",
        page: Annotated[int, Query(ge=1, le=100_000)] = 1,
    ) -> Response:
        return renderer.page(request, "history", history=device.library.history(q.strip(), page))

    @routes.post("/interests/history/{click_id}/delete", **form())
    def delete(click_id: RowId, back: Annotated[str, Form(max_length=BACK_CHARS)] = "/interests/history") -> Response:
        device.library.delete_click(click_id)
        return see_other(back, "deleted")

    return routes
