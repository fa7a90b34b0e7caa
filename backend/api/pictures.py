"""GET /v1/pictures: which shards of publishers' pictures every device takes; they are blobs of `api.releases`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from backend.api.openapi import answers
from backend.api.reading import JSON
from device_app.wire.pictures import PictureList

if TYPE_CHECKING:
    from backend.composition import Services


def router(services: Services) -> APIRouter:
    """The list of pictures."""
    routes = APIRouter()

    @routes.get("/v1/pictures", response_class=Response, responses=answers(also={200: PictureList, 304: None}))
    def pictures(request: Request) -> Response:
        """The same for everybody. Its ETag is the hash of its bytes, which a device computes itself."""
        content, tag = services.pictures.shards.listing()
        etag = f'"{tag}"'
        headers = {"ETag": etag, "Cache-Control": "no-cache"}
        known = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
        if etag in known:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=JSON, headers=headers)

    return routes
