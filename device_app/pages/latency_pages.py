"""Routes that show how long requests take, stage by stage."""

from dataclasses import asdict

from fastapi import APIRouter, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse, Response

from device_app.pages.openapi import page
from device_app.pages.renderer import PageRenderer


def router(renderer: PageRenderer) -> APIRouter:
    """Return the routes of the latency page and its figures as JSON."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/latency", **page())
    def latency(request: Request) -> Response:
        return renderer.page(request, "latency", latency=device.latency())

    @routes.get("/latency.json")
    def export() -> Response:
        return JSONResponse(
            jsonable_encoder(asdict(device.latency())),
            headers={"content-disposition": 'attachment; filename="ownfeed-latency.json"'},
        )

    return routes
