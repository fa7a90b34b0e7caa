"""The pool: sources, followed feeds, runs, sections, duplicates, and taking news down."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.errors import OwnfeedError
from backend.news.errors import UnknownNews
from backend.news.followed_feeds import URL_CHARS
from backend.news.ingest_runs import IngestSummary
from backend.sections.taxonomy import chosen_section
from device_app.prose import Prose

WORDS = Prose("backend.console", "words.toml")

FOUND_SHOWN = 50
REASONS_SHOWN = 20
RUNS_SHOWN = 20
LABELS = WORDS.table("feed_labels")
Url = Annotated[str, Form(min_length=1, max_length=URL_CHARS)]


class RemovalUnconfirmed(OwnfeedError):
    """A feed is removed only by the page that asks first."""

    code, status, title = "removal-unconfirmed", 422, "The removal was not confirmed"

    def __init__(self) -> None:
        super().__init__("A feed is removed by the page that asks whether it shall be.", field="confirmed")


def router(controller: ConsoleController) -> APIRouter:
    """Routes of the pool page."""
    services = controller.services
    routes = APIRouter()

    def said(done: str) -> str:
        """Another sentence where nothing refreshes feeds by itself."""
        return done if services.feeds.is_on else f"{done}-only"

    def view(q: str = "", url: str = "", section: str = "", allowed: bool = False) -> Values:
        """q: what is looked for; url, section, allowed: what stands in the form of feeds."""
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
            "labels": LABELS,
            "url": url,
            "section": section,
            "pictures_allowed": allowed,
            "pictures": services.pictures.store.counts(REASONS_SHOWN),
            "pictures_limit": services.settings.pictures_served_bytes,
        }

    @routes.get("/pool")
    def pool(request: Request, q: Annotated[str, Query(max_length=200)] = "") -> Response:
        return controller.show(request, "pool", lambda: view(q))

    @routes.get("/pool/take-down")
    def ask_to_take_down(request: Request, news_id: Annotated[str, Query(min_length=1, max_length=80)]) -> Response:
        def question() -> Values:
            row = next((row for row in services.pool.live(datetime.now(UTC)) if row.id == news_id), None)
            if row is None:
                raise UnknownNews(news_id)
            return {
                "question": WORDS("take_down_question"),
                "words": WORDS("take_down", title=row.title, publisher=row.publisher),
                "deed": WORDS("take_down_deed"),
                "fields": {"news_id": news_id},
                "back": "/console/pool",
            }

        return controller.show(request, "confirm", question)

    @routes.post("/pool/take-down")
    def take_down(request: Request, news_id: Annotated[str, Form(min_length=1, max_length=80)]) -> Response:
        def deed() -> None:
            services.pool.take_down(news_id)
            services.pictures.wake()

        return controller.do(request, deed, "/console/pool", "taken-down")

    @routes.post("/pool/feeds")
    def add_feed(
        request: Request,
        url: Annotated[str, Form()] = "",
        section: Annotated[str, Form()] = "",
        pictures: Annotated[str, Form()] = "",
    ) -> Response:  # whatever was typed: what is refused comes back in the form, in its words
        def deed() -> None:
            own = chosen_section(section) if section.strip() else None
            services.feeds.followed.add(url.strip(), datetime.now(UTC), own, pictures == "on")
            services.feeds.wake()

        return controller.do(
            request,
            deed,
            "/console/pool",
            said("feed-added"),
            labels=LABELS,
            again=lambda problem, status: controller.renderer.page(
                request,
                "pool",
                status_code=status,
                here="/console/pool",
                **view(url=url, section=section, allowed=pictures == "on") | {"problem": problem},
            ),
        )

    @routes.post("/pool/feeds/pictures")
    def allow_pictures(request: Request, url: Url, allowed: Annotated[str, Form(pattern="^(on|off)$")]) -> Response:
        def deed() -> None:
            services.feeds.followed.allow_pictures(url, allowed == "on")
            services.pictures.wake()

        return controller.do(request, deed, "/console/pool", "pictures-on" if allowed == "on" else "pictures-off")

    @routes.post("/pool/feeds/pause")
    def pause_feed(request: Request, url: Url) -> Response:
        return controller.do(request, lambda: services.feeds.followed.pause(url), "/console/pool", "feed-paused")

    @routes.post("/pool/feeds/resume")
    def resume_feed(request: Request, url: Url) -> Response:
        def deed() -> None:
            services.feeds.followed.resume(url, datetime.now(UTC))
            services.feeds.wake()

        return controller.do(request, deed, "/console/pool", said("feed-resumed"))

    @routes.get("/pool/feeds/remove")
    def ask_to_remove_feed(
        request: Request, url: Annotated[str, Query(min_length=1, max_length=URL_CHARS)]
    ) -> Response:
        def question() -> Values:
            return {
                "question": WORDS("remove_question"),
                "words": WORDS("remove", url=url),
                "deed": WORDS("remove_deed"),
                "fields": {"url": url, "confirmed": "yes"},
                "back": "/console/pool",
            }

        return controller.show(request, "confirm", question)

    @routes.post("/pool/feeds/remove")
    def remove_feed(request: Request, url: Url, confirmed: Annotated[str, Form(max_length=3)] = "") -> Response:
        def deed() -> None:
            if confirmed != "yes":
                raise RemovalUnconfirmed
            services.feeds.followed.remove(url)

        return controller.do(request, deed, "/console/pool", "feed-removed")

    return routes
