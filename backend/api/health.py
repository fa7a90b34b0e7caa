"""GET /v1/health: the server's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter
from pydantic import BaseModel

from backend.api.openapi import answers
from backend.releases.errors import NothingPublished

if TYPE_CHECKING:
    from backend.composition import Services


class Health(BaseModel):
    """'ready' serves feeds; 'empty' has no release or no articles with vectors yet."""

    status: Literal["ready", "empty"]
    release: str | None
    pool_version: int
    news: int


def router(services: Services) -> APIRouter:
    """The health route.

    It reads only memory, so a busy database can't make a running server look dead.
    """
    routes = APIRouter()

    @routes.get("/v1/health", responses=answers())
    async def health() -> Health:
        catalogue = services.live.current
        try:
            release = services.served.current.release
        except NothingPublished:
            release = None
        return Health(
            status="ready" if release is not None and len(catalogue) else "empty",
            release=release,
            pool_version=catalogue.pool_version,
            news=len(catalogue),
        )

    return routes
