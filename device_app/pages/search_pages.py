"""Routes for searching this device's articles and for saved searches.

Everything is answered on the device.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from device_app.feed.whole_pool import SEARCH_PAGE
from device_app.pages.openapi import form, page
from device_app.pages.renderer import BACK_CHARS, WORDS, PageRenderer, RowId, see_other
from device_app.store.searches import WORDS_LIMIT_CHARS
from protocol.news import NewsCard

PAGES_LIMIT = 10_000
TOPICS_OFFERED = 3
LOOKED_THROUGH = 20


def router(renderer: PageRenderer) -> APIRouter:
    """Return the routes of search results and saved searches."""
    device = renderer.device
    routes = renderer.router()

    @routes.get("/search", **page(404))
    def search(
        request: Request,
        q: Annotated[str, Query(max_length=WORDS_LIMIT_CHARS)] = "",
        page: Annotated[int, Query(ge=1, le=PAGES_LIMIT)] = 1,
        hidden: Literal["show"] | None = None,
    ) -> Response:
        query = " ".join(q.split())
        found = device.library.search(query, page, hidden=hidden is not None) if query else None
        kept, stances = device.library.searches(), device.interests.stances()
        return renderer.cards(
            request,
            "search",
            query=query,
            found=found,
            page=page,
            with_hidden=hidden is not None,
            size=SEARCH_PAGE,
            pool=device.whole_pool.size(),
            texts=device.whole_pool.texts(),
            held=kept.saved(query),
            topics=[(name, stances.get(("topic", name))) for name in topics_of(found.cards if found else ())],
            kept=kept,
            status_code=404 if page > 1 and not (found and found.cards) else 200,
        )

    @routes.get("/searches", **page())
    def searches(request: Request) -> Response:
        return renderer.page(request, "searches", kept=device.library.searches())

    @routes.post("/searches", **form())
    def save(
        request: Request,
        words: Annotated[str, Form(max_length=WORDS_LIMIT_CHARS)],
        back: Annotated[str, Form(max_length=BACK_CHARS)] = "/searches",
    ) -> Response:
        try:
            device.library.save_search(words)
        except ValueError as refused:
            return renderer.problem(request, 422, WORDS("search_refused_title"), f"{refused}.")
        return see_other(back, "search_saved")

    @routes.post("/searches/{search_id}/delete", **form())
    def delete(search_id: RowId, back: Annotated[str, Form(max_length=BACK_CHARS)] = "/searches") -> Response:
        device.library.delete_search(search_id)
        return see_other(back, "search_deleted")

    return routes


def topics_of(found: Sequence[NewsCard]) -> list[str]:
    """Return the most frequent topics among the best results, so that the reader can follow one."""
    topics = Counter(card.topic for card in found[:LOOKED_THROUGH] if card.topic)
    return [name for name, _ in topics.most_common(TOPICS_OFFERED)]
