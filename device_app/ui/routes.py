"""All pages of the reader's own app, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from device_app.ui import (
    art,
    feed_pages,
    interest_pages,
    latency_pages,
    privacy_pages,
    search_pages,
    story_pages,
    training_pages,
)
from device_app.ui.press import Press
from device_app.wire.ids import NewsId

if TYPE_CHECKING:
    from device_app.device import Device

KEEP_A_YEAR = "private, max-age=31536000, immutable"


def router(device: Device) -> APIRouter:
    """Every route of the device's pages. Put `guard.LocalGuard` before them."""
    press = Press(device)
    routes = APIRouter(include_in_schema=False)
    for pages in (
        feed_pages,
        search_pages,
        story_pages,
        interest_pages,
        privacy_pages,
        training_pages,
        latency_pages,
    ):
        routes.include_router(pages.router(press))

    @routes.get("/static/{version}/{name:path}")
    def static(version: str, name: str) -> Response:
        asset = press.assets.get(version, name)
        if asset is None:
            raise HTTPException(404, "no such file")
        return Response(asset.payload, media_type=asset.media_type, headers={"cache-control": KEEP_A_YEAR})

    @routes.get("/art/{news_id}.svg")
    def picture(news_id: NewsId, section: str = Query(max_length=80)) -> Response:
        return Response(art.draw(section, news_id), media_type="image/svg+xml", headers={"cache-control": KEEP_A_YEAR})

    return routes
