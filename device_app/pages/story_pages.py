"""A story, and what the reader says about it. Everything here is answered by the device alone."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from device_app.pages.local_origin import followed
from device_app.pages.openapi import form, page
from device_app.pages.renderer import BACK_CHARS, WORDS, PageRenderer, answer_form, minutes_to_read
from device_app.wire.ids import NewsId


def router(renderer: PageRenderer) -> APIRouter:
    """The story page and its forms."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/story/{news_id}", **page(404))
    def story(
        request: Request,
        news_id: NewsId,
        feed: Annotated[str | None, Query(max_length=80)] = None,
        found: Annotated[str | None, Query(max_length=200)] = None,
    ) -> Response:
        article = device.open(news_id, feed, found=found is not None, clicked=followed(request.headers))
        card = article.card
        stances = device.stances()
        choices = [
            (kind, name, stances.get((kind, name)))
            for kind, name in (("topic", card.topic), ("section", card.section), ("publisher", card.publisher))
            if name and (kind != "topic" or name != card.section or (kind, name) in stances)
        ]
        came_from = device.page_path(feed) if found is None else f"/search?{urlencode({'q': found})}"
        return renderer.cards(
            request,
            "story",
            article=article,
            card=card,
            stances=choices,
            minutes=minutes_to_read(article),
            back=f"{came_from}#n-{card.id}",
            back_words=WORDS("back_to_feed" if found is None else "back_to_results"),
        )

    @routes.post("/story/{news_id}/react", **form(204, 404))
    def react(
        request: Request,
        news_id: NewsId,
        kind: Annotated[Literal["like", "less", "save"], Form()],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/",
    ) -> Response:
        device.react(news_id, kind)
        return answer_form(request, back)

    @routes.post("/stance", **form(204))
    def stance(
        request: Request,
        kind: Annotated[Literal["topic", "section", "publisher"], Form()],
        name: Annotated[str, Form(min_length=1, max_length=120)],
        stance: Annotated[Literal["follow", "block", "none"], Form()],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/",
    ) -> Response:
        device.stance(kind, name, None if stance == "none" else stance)
        return answer_form(request, back)

    return routes
