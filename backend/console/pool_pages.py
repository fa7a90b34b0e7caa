"""The pool: sources, followed feeds, runs, sections, duplicates, and taking news down."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.errors import OwnfeedError
from backend.news.followed_feeds import URL_CHARS
from backend.news.ingest_runs import IngestSummary
from backend.sections.taxonomy import LABEL_CHARS, chosen_section

FOUND_SHOWN = 50
RUNS_SHOWN = 20
Url = Annotated[str, Form(min_length=1, max_length=URL_CHARS)]


class RemovalUnconfirmed(OwnfeedError):
    """A feed is removed only where the form's box is ticked."""

    code, status, title = "removal-unconfirmed", 422, "The removal was not confirmed"

    def __init__(self) -> None:
        super().__init__("Tick the box beside the button to remove a feed.", field="confirmed")


def router(controller: ConsoleController) -> APIRouter:
    """Routes of the pool page."""
    services = controller.services
    routes = APIRouter()

    def said(done: str) -> str:
        """Another sentence where nothing refreshes feeds by itself."""
        return done if services.feeds.is_on else f"{done}-only"

    @routes.get("/pool")
    def pool(request: Request, q: Annotated[str, Query(max_length=200)] = "") -> Response:
        def view() -> Values:
            query = q.strip().lower()
            rows = services.pool.live(datetime.now(UTC)) if query else []
            found = [row for row in rows if query in row.title.lower() or query == row.id.lower()]
            runs = services.pool.ingests(100)
            newest: dict[str, IngestSummary] = {}
            for run in runs:
                newest.setdefault(run.source, run)
            return {
                "counts": services.pool.counts(),
                "catalogue": services.live.current,
                "runs": runs[:RUNS_SHOWN],
                "newest": newest,
                "feeds": services.feeds.followed.all(),
                "feeds_refreshed": services.feeds.is_on,
                "query": q.strip(),
                "found": found[:FOUND_SHOWN],
                "found_count": len(found),
            }

        return controller.show(request, "pool", view)

    @routes.post("/pool/take-down")
    def take_down(request: Request, news_id: Annotated[str, Form(min_length=1, max_length=80)]) -> Response:
        return controller.do(request, lambda: services.pool.take_down(news_id), "/console/pool", "taken-down")

    @routes.post("/pool/feeds")
    def add_feed(request: Request, url: Url, section: Annotated[str, Form(max_length=LABEL_CHARS)] = "") -> Response:
        def deed() -> None:
            own = chosen_section(section) if section.strip() else None
            services.feeds.followed.add(url.strip(), datetime.now(UTC), own)
            services.feeds.wake()

        return controller.do(request, deed, "/console/pool", said("feed-added"))

    @routes.post("/pool/feeds/pause")
    def pause_feed(request: Request, url: Url) -> Response:
        return controller.do(request, lambda: services.feeds.followed.pause(url), "/console/pool", "feed-paused")

    @routes.post("/pool/feeds/resume")
    def resume_feed(request: Request, url: Url) -> Response:
        def deed() -> None:
            services.feeds.followed.resume(url, datetime.now(UTC))
            services.feeds.wake()

        return controller.do(request, deed, "/console/pool", said("feed-resumed"))

    @routes.post("/pool/feeds/remove")
    def remove_feed(request: Request, url: Url, confirmed: Annotated[str, Form(max_length=3)] = "") -> Response:
        def deed() -> None:
            if confirmed != "yes":
                raise RemovalUnconfirmed
            services.feeds.followed.remove(url)

        return controller.do(request, deed, "/console/pool", "feed-removed")

    return routes
