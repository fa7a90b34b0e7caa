"""Assembles all routes of the reader's own app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, HTTPException, Path, Query
from fastapi.responses import RedirectResponse, Response

from device_app.pages import (
    app_pages,
    feed_management,
    feed_pages,
    greader,
    interest_pages,
    latency_pages,
    mute_rules_pages,
    named_pages,
    own_feeds_pages,
    privacy_pages,
    search_pages,
    settings_pages,
    story_pages,
    training_pages,
)
from device_app.pages.local_origin import PageKey
from device_app.pages.openapi import ANYTHING, JSON, answers, bytes_of
from device_app.pages.passwords import PasswordFile, PasswordLimiter
from device_app.pages.renderer import PageRenderer
from device_app.pages.story_links import StoryLinks
from protocol.bodies import TEXT_PICTURES_LIMIT
from protocol.ids import NewsId

if TYPE_CHECKING:
    from device_app.device import Device

KEEP_A_YEAR = "private, max-age=31536000, immutable"
WEBP = "image/webp"
WORKER = "js/worker.js"


def router(device: Device, key: PageKey) -> APIRouter:
    """Return every route of the device's pages.

    Put `local_origin.LocalOriginMiddleware` in front of them.
    """
    renderer = PageRenderer(device, StoryLinks(key))
    routes = APIRouter()
    pictures = renderer.router()
    if device.own_server is not None:
        apps = PasswordFile(device.settings.home / greader.PASSWORD_FILE)
        routes.routes.extend(greader.router(device, apps, PasswordLimiter()).routes)
        routes.routes.extend(app_pages.router(renderer, apps).routes)
    for pages in (
        feed_pages,
        feed_management,
        named_pages,
        own_feeds_pages,
        search_pages,
        story_pages,
        interest_pages,
        privacy_pages,
        settings_pages,
        training_pages,
        latency_pages,
        mute_rules_pages,
    ):
        # including the router would create each route a second time
        routes.routes.extend(pages.router(renderer).routes)

    @routes.get(
        "/static/{version}/{name:any}",
        response_class=Response,
        responses=bytes_of(ANYTHING) | answers(404, 422, media_type=JSON),
    )
    def static(version: Annotated[str, Path(max_length=64)], name: Annotated[str, Path(max_length=200)]) -> Response:
        asset = renderer.assets.get(version, name)
        if asset is None:
            raise HTTPException(404, "no such file")
        # The worker controls all pages although it is one of the static files.
        scope = {"service-worker-allowed": "/"} if name == WORKER else {}
        return Response(asset.payload, media_type=asset.media_type, headers={"cache-control": KEEP_A_YEAR} | scope)

    @pictures.get("/pictures/{news_id}.webp", response_class=Response, responses=bytes_of(WEBP, 303, 404))
    def own_picture(
        news_id: NewsId, of: str = Query("", max_length=64), n: int = Query(0, ge=0, le=TEXT_PICTURES_LIMIT)
    ) -> Response:
        """Return the publisher's picture from this device, or the drawn one if it is gone.

        A page may be older than the pictures stored here.
        """
        content = device.parts.stores.pictures.content(news_id, n)
        if content is not None:
            return Response(content, media_type=WEBP, headers={"cache-control": KEEP_A_YEAR})
        known = device.parts.stores.news.cards([news_id])
        if not known:
            raise HTTPException(404, "This picture is no longer here")
        return RedirectResponse(renderer.art_path(known[0]), status_code=303)

    @pictures.get("/{path:any}", include_in_schema=False)
    def nowhere(path: str) -> Response:
        raise HTTPException(404, "There is no page at this address")

    routes.routes.extend(pictures.routes)
    return routes
