"""The pool page: sources, followed feeds, runs, sections, and taking articles down."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.errors import OwnfeedError
from backend.news.discovery import DiscoveredFeed, SeveralFeeds
from backend.news.errors import UnknownNews
from backend.news.feed_addresses import URL_CHARS
from backend.news.followed_feeds import TITLE_CHARS
from backend.news.ingest_runs import IngestSummary
from backend.news.sections import chosen_section
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("backend.console", "words.toml")

FOUND_SHOWN = 50
REASONS_SHOWN = 20
RUNS_SHOWN = 20
LABELS = WORDS.table("feed_labels")
Url = Annotated[str, Form(min_length=1, max_length=URL_CHARS)]


class RemovalUnconfirmed(OwnfeedError):
    """A feed can only be removed from the confirmation page."""

    code, status, title = "removal-unconfirmed", 422, "The removal was not confirmed"

    def __init__(self) -> None:
        super().__init__("Confirm the removal on the page that asks for it.", field="confirmed")


def router(controller: ConsoleController) -> APIRouter:
    services = controller.services
    routes = APIRouter()

    def message_key(done: str) -> str:
        """The key of the message after an action; another one if feeds aren't refreshed automatically."""
        return done if services.feeds.is_on else f"{done}-only"

    def view(
        q: str = "", url: str = "", section: str = "", allowed: bool = False, choices: Sequence[DiscoveredFeed] = ()
    ) -> Values:
        """Values of the page. q: the search text; url, section, allowed: the values of the feed form.

        choices: the feeds found for that address.
        """
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
            "removed": services.feeds.followed.removed(),
            "choices": choices,
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
                "message": WORDS("take_down", title=row.title, publisher=row.publisher),
                "action": WORDS("take_down_action"),
                "fields": {"news_id": news_id},
                "back": "/console/pool",
            }

        return controller.show(request, "confirm", question)

    @routes.post("/pool/take-down")
    def take_down(request: Request, news_id: Annotated[str, Form(min_length=1, max_length=80)]) -> Response:
        def action() -> None:
            services.pool.take_down(news_id)
            services.pictures.wake()

        return controller.do(request, action, "/console/pool", "taken-down")

    @routes.post("/pool/feeds")
    def add_feed(
        request: Request,
        url: Annotated[str, Form()] = "",
        section: Annotated[str, Form()] = "",
        pictures: Annotated[str, Form()] = "",
    ) -> Response:  # Accepts any input: the form shows invalid input again, with the error.
        choices: list[DiscoveredFeed] = []

        def action() -> None:
            own = chosen_section(section) if section.strip() else None
            choices.extend(services.feeds.find(url.strip()))
            if len(choices) > 1:
                raise SeveralFeeds(url.strip(), choices)
            services.feeds.followed.add(choices.pop().url, datetime.now(UTC), own, pictures == "on")
            services.feeds.wake()

        return controller.do(
            request,
            action,
            "/console/pool",
            message_key("feed-added"),
            labels=LABELS,
            again=lambda problem, status: controller.renderer.page(
                request,
                "pool",
                status_code=status,
                here="/console/pool",
                **view(url=url, section=section, allowed=pictures == "on", choices=choices) | {"problem": problem},
            ),
        )

    @routes.post("/pool/feeds/change")
    def change_feed(
        request: Request,
        url: Url,
        title: Annotated[str, Form(max_length=TITLE_CHARS)] = "",
        folder: Annotated[str, Form(max_length=URL_CHARS)] = "",
        section: Annotated[str, Form(max_length=80)] = "",
        proxy: Annotated[str, Form(max_length=URL_CHARS)] = "",
        unverified: Annotated[str, Form(max_length=3)] = "",
    ) -> Response:
        def action() -> None:
            now, feeds, feed = datetime.now(UTC), services.feeds.followed, services.feeds.followed.one(url)
            own = chosen_section(section) if section.strip() else None
            if proxy.strip() != (feed.proxy or ""):
                feeds.read_through(url, proxy.strip() or None, now)
            if (unverified == "on") != feed.unverified:
                feeds.check_certificate(url, unverified != "on", now)
            if own != feed.section:
                feeds.sort_into(url, own, now)
            if title.strip() != feed.title:
                feeds.rename(url, title)
            if (names := tuple(name.strip() for name in folder.splitlines() if name.strip())) != feed.folder:
                feeds.move_to(url, names)
            services.feeds.wake()

        return controller.do(request, action, "/console/pool", "feed-changed", labels=LABELS)

    @routes.post("/pool/feeds/refresh")
    def refresh_feeds(request: Request, url: Annotated[str, Form(max_length=URL_CHARS)] = "") -> Response:
        def action() -> None:
            services.feeds.followed.ask_now(datetime.now(UTC), url or None)
            services.feeds.wake()

        return controller.do(request, action, "/console/pool", message_key("feed-asked"))

    @routes.post("/pool/feeds/restore")
    def restore_feed(request: Request, url: Url) -> Response:
        def action() -> None:
            services.feeds.followed.restore(url, datetime.now(UTC))
            services.feeds.wake()

        return controller.do(request, action, "/console/pool", message_key("feed-restored"))

    @routes.post("/pool/feeds/pictures")
    def allow_pictures(request: Request, url: Url, allowed: Annotated[str, Form(pattern="^(on|off)$")]) -> Response:
        def action() -> None:
            services.feeds.followed.allow_pictures(url, allowed == "on")
            services.pictures.wake()

        return controller.do(request, action, "/console/pool", "pictures-on" if allowed == "on" else "pictures-off")

    @routes.post("/pool/feeds/pause")
    def pause_feed(request: Request, url: Url) -> Response:
        return controller.do(request, lambda: services.feeds.followed.pause(url), "/console/pool", "feed-paused")

    @routes.post("/pool/feeds/resume")
    def resume_feed(request: Request, url: Url) -> Response:
        def action() -> None:
            services.feeds.followed.resume(url, datetime.now(UTC))
            services.feeds.wake()

        return controller.do(request, action, "/console/pool", message_key("feed-resumed"))

    @routes.get("/pool/feeds/remove")
    def ask_to_remove_feed(
        request: Request, url: Annotated[str, Query(min_length=1, max_length=URL_CHARS)]
    ) -> Response:
        def question() -> Values:
            return {
                "question": WORDS("remove_question"),
                "message": WORDS("remove", url=url),
                "action": WORDS("remove_action"),
                "fields": {"url": url, "confirmed": "yes"},
                "back": "/console/pool",
            }

        return controller.show(request, "confirm", question)

    @routes.post("/pool/feeds/remove")
    def remove_feed(request: Request, url: Url, confirmed: Annotated[str, Form(max_length=3)] = "") -> Response:
        def action() -> None:
            if confirmed != "yes":
                raise RemovalUnconfirmed
            services.feeds.followed.remove(url, datetime.now(UTC))

        return controller.do(request, action, "/console/pool", "feed-removed")

    return routes
