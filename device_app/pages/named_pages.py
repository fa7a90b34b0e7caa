"""Routes that list all articles on this device of one topic, section or publisher.

No request reveals which of them the reader opened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from device_app.pages.openapi import page
from device_app.pages.renderer import PageRenderer, SectionName
from device_app.store.news import Naming

if TYPE_CHECKING:
    from device_app.device import Device

SHOWN = 30
PAGES_LIMIT = 10_000
Name = Annotated[str, Path(min_length=1, max_length=120)]
PageNumber = Annotated[int, Query(ge=1, le=PAGES_LIMIT)]


def router(renderer: PageRenderer) -> APIRouter:
    """Return one route for each kind of name; each has further pages."""
    routes = renderer.router()
    laid_out = _laying_out(renderer, renderer.device)

    @routes.get("/topic/{topic:any}", **page(404))
    def topic(request: Request, topic: Name, page: PageNumber = 1) -> Response:
        return laid_out(request, "topic", topic, page)

    @routes.get("/publisher/{publisher:any}", **page(404))
    def publisher(request: Request, publisher: Name, page: PageNumber = 1) -> Response:
        return laid_out(request, "publisher", publisher, page)

    @routes.get("/explore/{section}", **page(404))
    def section(request: Request, section: SectionName, page: PageNumber = 1) -> Response:
        return laid_out(request, "section", section, page)

    return routes


def _laying_out(renderer: PageRenderer, device: Device) -> Callable[[Request, Naming, str, int], Response]:
    def laid_out(request: Request, kind: Naming, name: str, page: int) -> Response:
        upto = page * SHOWN
        with device.lists.still():
            listed = device.whole_pool.named(kind, name)
            held = device.lists.hold_ids(f"{kind}/{name}", listed, whole=not device.whole_pool.is_unread())
            cards = device.whole_pool.cards_of(held.ids[upto - SHOWN : upto])
            device.whole_pool.show(cards)
        return renderer.cards(
            request,
            "named",
            kind=kind,
            name=name,
            stance=device.interests.stances().get((kind, name)),
            pool=device.whole_pool.size(),
            held=held,
            count=len(held.ids),
            came=device.lists.came(held, cards),
            shown=cards,
            page=page,
            older=page + 1 if len(held.ids) > upto else None,
            status_code=200 if cards else 404,
        )

    return laid_out
