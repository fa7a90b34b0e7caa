"""GET /v1/pictures: which shards of publishers' pictures every device takes; they are blobs of `api.releases`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from backend.api.openapi import answers
from backend.api.reading import JSON
from backend.api.releases import tagged
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
        return tagged(request, content, tag, JSON)

    return routes
