"""Routes of Feeds: the reader's own feeds with unread counts, and their stories by time.

They exist only on a device whose server is the reader's own.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import Response

from device_app.feed.own_feeds import FeedScope
from device_app.pages.openapi import form, page
from device_app.pages.renderer import BACK_CHARS, WORDS, PageRenderer, answer_mark, see_other
from device_app.store.articles import Place
from device_app.store.rows import from_us, to_us

NAME_CHARS = 120
PLACE = r"^-?[0-9]{1,17}\.[A-Za-z0-9][A-Za-z0-9._:~-]{0,79}$"
Name = Annotated[str | None, Query(max_length=NAME_CHARS)]
FormName = Annotated[str | None, Form(max_length=NAME_CHARS)]
FormPlace = Annotated[str | None, Form(pattern=PLACE)]


def router(renderer: PageRenderer) -> APIRouter:
    device = renderer.device
    routes = renderer.router()

    def own_only() -> None:
        if not device.status().own_feeds:
            raise HTTPException(404, WORDS("nowhere").removesuffix("."))

    @routes.get("/feeds", **page(404))
    def feeds(request: Request) -> Response:
        own_only()
        return renderer.page(request, "feeds", overview=device.feeds.overview(), managed=device.own_server is not None)

    @routes.get("/feeds/stories", **page(303, 404))
    def stories(
        request: Request,
        feed: Name = None,
        folder: Name = None,
        after: Annotated[str | None, Query(pattern=PLACE)] = None,
        since: Annotated[int | None, Query(ge=0, le=2**53)] = None,
        hidden: Literal["show"] | None = None,
    ) -> Response:
        """List one feed, one folder, or everything; newest first.

        The address of a list of unread stories contains its time: stories read after that stay listed, even when the
        reader goes back to it, until the reader requests a new list.
        """
        own_only()
        only_unread = device.feeds.only_unread()
        if only_unread and since is None:
            kept = [(name, value) for name, value in request.query_params.multi_items() if name != "since"]
            return see_other(f"/feeds/stories?{urlencode([*kept, ('since', to_us(datetime.now(UTC)))])}")
        which, unread_since = FeedScope(feed, folder), from_us(since) if only_unread and since is not None else None
        with device.lists.still():
            found = device.feeds.page(which, _place(after), unread_since, hidden=hidden is not None)
            cards = device.whole_pool.cards_of([place.id for place in found.places])
            device.whole_pool.show(cards)
        here = {"feed": feed, "folder": folder}
        address = urlencode({name: value for name, value in here.items() if value is not None})
        kept_since = f"&since={since}" if unread_since is not None else ""
        kept_since += "&hidden=show" if hidden else ""
        return renderer.cards(
            request,
            "feed_stories",
            which=which,
            found=found,
            shown=cards,
            only_unread=only_unread,
            with_hidden=hidden is not None,
            address=address,
            here_now=f"/feeds/stories?{address}{kept_since}",
            upto=None if found.newest is None else _written(found.newest),
            older=None if found.after is None else f"{address}{kept_since}&after={_written(found.after)}",
            places={place.id: _written(place) for place in found.places},
            status_code=200 if cards or found.line is not None or feed is None else 404,
        )

    @routes.post("/feeds/read", **form(204, 404))
    def read(
        request: Request,
        feed: FormName = None,
        folder: FormName = None,
        upto: FormPlace = None,
        above: FormPlace = None,
        below: FormPlace = None,
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/feeds",
    ) -> Response:
        """Mark a whole list as read, or what is above or below a place in it."""
        own_only()
        batch = device.feeds.mark_all(
            FeedScope(feed, folder), upto=_place(upto), above=_place(above), below=_place(below)
        )
        return answer_mark(request, back, batch)

    @routes.post("/feeds/only-unread", **form(404))
    def only_unread(
        show: Annotated[Literal["unread", "all"], Form()],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/feeds",
    ) -> Response:
        own_only()
        device.feeds.show_only_unread(show == "unread")
        return see_other(back)

    return routes


def _written(place: Place) -> str:
    return f"{place.published_us}.{place.id}"


def _place(text: str | None) -> Place | None:
    if text is None or not re.fullmatch(PLACE, text):
        return None
    published_us, _, news_id = text.partition(".")
    return Place(int(published_us), news_id)
