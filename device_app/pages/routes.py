"""All pages of the reader's own app, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, HTTPException, Path, Query
from fastapi.responses import RedirectResponse, Response

from device_app.pages import (
    feed_pages,
    interest_pages,
    latency_pages,
    named_pages,
    privacy_pages,
    search_pages,
    settings_pages,
    story_pages,
    training_pages,
)
from device_app.pages.art import drawing
from device_app.pages.openapi import ANYTHING, JSON, answers, bytes_of
from device_app.pages.renderer import PageRenderer, art_path
from device_app.wire.ids import NewsId

if TYPE_CHECKING:
    from device_app.device import Device

KEEP_A_YEAR = "private, max-age=31536000, immutable"
SVG, WEBP = "image/svg+xml", "image/webp"
WORKER = "js/worker.js"


def router(device: Device) -> APIRouter:
    """Every route of the device's pages. Put `local_origin.LocalOriginMiddleware` before them."""
    renderer = PageRenderer(device)
    routes = APIRouter()
    pictures = renderer.router()
    for pages in (
        feed_pages,
        named_pages,
        search_pages,
        story_pages,
        interest_pages,
        privacy_pages,
        settings_pages,
        training_pages,
        latency_pages,
    ):
        routes.routes.extend(pages.router(renderer).routes)  # to include them would make each a second time

    @routes.get(
        "/static/{version}/{name:any}",
        response_class=Response,
        responses=bytes_of(ANYTHING) | answers(404, 422, media_type=JSON),
    )
    def static(version: Annotated[str, Path(max_length=64)], name: Annotated[str, Path(max_length=200)]) -> Response:
        asset = renderer.assets.get(version, name)
        if asset is None:
            raise HTTPException(404, "no such file")
        # The worker answers for all pages, though it lies under the static files.
        scope = {"service-worker-allowed": "/"} if name == WORKER else {}
        return Response(asset.payload, media_type=asset.media_type, headers={"cache-control": KEEP_A_YEAR} | scope)

    @pictures.get("/art/{news_id}.svg", response_class=Response, responses=bytes_of(SVG))
    def picture(
        news_id: NewsId, section: str = Query(max_length=80), topic: str = Query("", max_length=80)
    ) -> Response:
        return Response(drawing.draw(section, news_id, topic), media_type=SVG, headers={"cache-control": KEEP_A_YEAR})

    @pictures.get("/pictures/{news_id}.webp", response_class=Response, responses=bytes_of(WEBP, 303, 404))
    def own_picture(news_id: NewsId, of: str = Query("", max_length=64)) -> Response:
        """Its publisher's, from this device. A page may be older than what is here: then the drawn one."""
        content = device.parts.stores.pictures.content(news_id)
        if content is not None:
            return Response(content, media_type=WEBP, headers={"cache-control": KEEP_A_YEAR})
        known = device.parts.stores.news.cards([news_id])
        if not known:
            raise HTTPException(404, "This picture is no longer here")
        return RedirectResponse(art_path(known[0]), status_code=303)

    @pictures.get("/art/page/{feed_id}.svg", response_class=Response, responses=bytes_of(SVG, 404))
    def pictures_of(feed_id: Annotated[str, Path(max_length=80)]) -> Response:
        feed = device.page(feed_id)
        if feed is None:
            raise HTTPException(404, "This page of your feed is no longer kept")
        cards = [item.card for item in feed.items]
        drawn = drawing.sheet([drawing.draw(card.section, card.id, card.topic) for card in cards])
        return Response(drawn, media_type=SVG, headers={"cache-control": KEEP_A_YEAR})

    @pictures.get("/{path:any}", include_in_schema=False)
    def nowhere(path: str) -> Response:
        raise HTTPException(404, "There is no page at this address")

    routes.routes.extend(pictures.routes)
    return routes
