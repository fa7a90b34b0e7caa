"""Routes of a story and of the reader's reactions to it.

Everything is answered on the device.
"""

import re
from typing import Annotated, Literal
from urllib.parse import unquote, urlencode

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from device_app.feed.held_lists import FOUND
from device_app.pages.local_origin import followed, navigates
from device_app.pages.openapi import form, page
from device_app.pages.renderer import (
    BACK_CHARS,
    WORDS,
    PageRenderer,
    answer_form,
    answer_mark,
    local_path,
    minutes_to_read,
    see_other,
)
from device_app.pages.story_links import TOKEN_CHARS
from protocol.ids import NewsId

ID = r"[A-Za-z0-9][A-Za-z0-9._:~-]{0,79}"
IDS = rf"^{ID}(?: {ID})*$"
"""Ids of stories, separated by spaces."""
MARKED_AT_ONCE = 1_000
"""Maximum number of stories that one form marks as read; no page shows more."""


def name_of(path: str | None, found: str | None) -> str:
    """Return the name of the list at a path, or of a search's results, as `HeldLists` names them."""
    name = unquote((path or "").partition("?")[0].removeprefix("/"))
    return re.sub("^explore/", "section/", name) if found is None else FOUND + found


def router(renderer: PageRenderer) -> APIRouter:
    """Return the routes of the story page and its forms."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/story/{news_id}", **page(303, 404))
    def story(
        request: Request,
        news_id: NewsId,
        feed: Annotated[str | None, Query(max_length=80)] = None,
        found: Annotated[str | None, Query(max_length=200)] = None,
        listed: Annotated[str | None, Query(alias="list", max_length=BACK_CHARS)] = None,
        token: Annotated[str | None, Query(max_length=TOKEN_CHARS)] = None,
    ) -> Response:
        if token is not None and navigates(request.headers):
            # A click is recorded once, before redirecting to the address without the token: reloading, going back or
            # opening a bookmark records nothing.
            if followed(request.headers) and renderer.links.made(token, news_id, feed, found, listed):
                device.reading.click(news_id, feed, found=found is not None)
            return see_other(renderer.links.address(news_id, feed, found, listed))
        article = device.reading.open(news_id, feed, clicked=False)
        card = article.card
        stances = device.interests.stances()
        choices = [
            (kind, name, stances.get((kind, name)))
            for kind, name in (("topic", card.topic), ("section", card.section), ("publisher", card.publisher))
            if name and (kind != "topic" or name != card.section or (kind, name) in stances)
        ]
        if listed is not None:
            came_from, words = local_path(listed), WORDS("back_to_list")
        elif found is not None:
            came_from, words = f"/search?{urlencode({'q': found})}", WORDS("back_to_results")
        else:
            came_from, words = device.reading.page_path(feed), WORDS("back_to_feed")
        opened_from = device.reading.page(article.feed_id) if article.feed_id else None
        shown = (
            [item.card.id for item in opened_from.items] if opened_from else device.lists.shown(name_of(listed, found))
        )
        before, after = device.whole_pool.beside(card.id, shown)
        return renderer.cards(
            request,
            "story",
            before=before,
            after=after,
            found=found,
            listed=listed,
            tools=WORDS.table("tools"),
            article=article,
            card=card,
            stances=choices,
            minutes=minutes_to_read(article),
            text=renderer.text_of(article),
            back=f"{came_from}#n-{card.id}",
            back_words=words,
        )

    @routes.post("/story/{news_id}/react", **form(204, 404))
    def react(
        request: Request,
        news_id: NewsId,
        kind: Annotated[Literal["like", "less", "save", "read"], Form()],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/",
    ) -> Response:
        if kind == "read":
            device.library.mark([news_id], read=news_id not in device.library.read_news())
        else:
            device.library.react(news_id, kind)
        return answer_form(request, back)

    @routes.post("/read", **form(204))
    def read(
        request: Request,
        news: Annotated[str, Form(max_length=90 * MARKED_AT_ONCE, pattern=IDS)],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/",
    ) -> Response:
        """Mark all stories of a page as read."""
        return answer_mark(request, back, device.library.mark(news.split()))

    @routes.post("/read/undo", **form(204))
    def undo_read(
        request: Request,
        batch: Annotated[int, Form(ge=0, le=2**53)],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/",
    ) -> Response:
        device.library.undo_mark(batch)
        return answer_form(request, back)

    @routes.post("/stance", **form(204))
    def stance(
        request: Request,
        kind: Annotated[Literal["topic", "section", "publisher"], Form()],
        name: Annotated[str, Form(min_length=1, max_length=120)],
        stance: Annotated[Literal["follow", "block", "none"], Form()],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/",
    ) -> Response:
        device.interests.stance(kind, name, None if stance == "none" else stance)
        return answer_form(request, back)

    return routes
