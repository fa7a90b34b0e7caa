"""GET /v1/pictures: lists the shards of publishers' pictures, which are blobs of `api.releases`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from backend.api.openapi import JSON, answers
from backend.api.releases import tagged
from protocol.pictures import PictureList

if TYPE_CHECKING:
    from backend.composition import Services


def router(services: Services) -> APIRouter:
    """The route of the list of pictures."""
    routes = APIRouter()

    @routes.get("/v1/pictures", response_class=Response, responses=answers(also={200: PictureList, 304: None}))
    def pictures(request: Request) -> Response:
        """The list, which is the same for every device.

        Its ETag is the hash of its bytes, which a device computes itself.
        """
        content, tag = services.pictures.shards.listing()
        return tagged(request, content, tag, JSON)

    return routes
