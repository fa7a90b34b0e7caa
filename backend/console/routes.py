"""The operator's pages: overview, pool, counts, releases, recall, rounds, quality, privacy, latency.

The overview's alerts about current problems are computed each time it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response
from starlette.routing import Match

from backend.console import counts_pages, pool_pages, quality_pages, recall_pages, release_pages, round_pages
from backend.console.controller import ConsoleController, is_own_form, is_token, let_in
from backend.console.purposes import SURVIVORS, backfill_shown, report_cost, sum_costs, upload_costs
from backend.console.renderer import TemplateRenderer
from backend.measurements import end_to_end
from backend.settings import url_of
from protocol.text_catalogue import TextCatalogue

if TYPE_CHECKING:
    from backend.composition import Services


WORDS = TextCatalogue("backend.console", "words.toml")


STALE_AFTER = timedelta(hours=24)
RECALL_P95_BAR_MS = 10.0


@dataclass(frozen=True)
class Alert:
    """One alert of the overview; page is where the operator can act on it."""

    weight: Literal["bad", "due"]
    message: str
    page: str


def alerts(services: Services, now: datetime | None = None) -> list[Alert]:
    """All current problems, the most severe first."""
    found = [*_releases(services), *_pool(services, now or datetime.now(UTC)), *_rounds(services), *_latency(services)]
    return sorted(found, key=lambda alert: alert.weight == "due")


def _releases(services: Services) -> Iterator[Alert]:
    manifest = services.releases.current_manifest()
    if manifest is None:
        yield Alert("bad", WORDS("no_release"), "releases")
    elif services.live.current.encoder != manifest.encoder:
        yield Alert("bad", WORDS("other_encoder", release=manifest.release), "pool")


def _pool(services: Services, now: datetime) -> Iterator[Alert]:
    catalogue = services.live.current
    if (newest := catalogue.newest_at) is None:
        yield Alert("bad", WORDS("empty"), "pool")
    elif now - newest > STALE_AFTER:
        yield Alert("due", WORDS("stale"), "pool")
    if catalogue.without_vector:
        yield Alert("due", WORDS("without_vector", count=catalogue.without_vector), "pool")
    for refused in catalogue.status.refused:
        yield Alert("due", WORDS("index_refused", why=refused), "pool")
    seen: set[str] = set()
    for run in services.pool.ingests(50):
        if run.source in seen:
            continue
        seen.add(run.source)
        if run.failure is not None:
            yield Alert("bad", WORDS("run_stopped", source=run.source, why=run.failure), "pool")
        elif run.rejected:
            yield Alert("due", WORDS("run_rejected", source=run.source, rows=run.rejected), "pool")


def _rounds(services: Services) -> Iterator[Alert]:
    last = next(iter(services.coordinator.history(1)), None)
    if last is not None and last.state == "failed":
        yield Alert("due", WORDS("round_failed", round=last.round, why=last.reason or WORDS("no_reason")), "rounds")


def _latency(services: Services) -> Iterator[Alert]:
    recall = services.latency.summary().get("recall")
    if recall is not None and recall.window >= 20:
        p95_ms = recall.stages["total"].p95_ms
        if p95_ms > RECALL_P95_BAR_MS:
            yield Alert("due", WORDS("slow_recall", p95_ms=p95_ms, bar_ms=RECALL_P95_BAR_MS), "latency")


SPARK_REQUESTS = 200


def router(services: Services) -> APIRouter:
    """Every route of the console, under /console."""
    controller = ConsoleController(services, TemplateRenderer())
    routes = APIRouter(prefix="/console", include_in_schema=False)

    @routes.get("/static/{version}/{name:path}")
    def static(version: str, name: str) -> Response:
        return controller.renderer.file(version, name)

    @routes.post("/sign-in")
    async def sign_in(request: Request) -> Response:
        if not is_own_form(request):
            return controller.refused(request)
        form = await request.form()
        if is_token(str(form.get("token", "")), services.admin_token):
            return let_in(request, services.admin_token, "/console")
        return controller.renderer.page(request, "sign_in", status_code=401, problem=WORDS("wrong_token"))

    for pages in (pool_pages, counts_pages, release_pages, recall_pages, round_pages, quality_pages):
        routes.include_router(pages.router(controller))

    @routes.get("")
    def overview(request: Request) -> Response:
        return controller.show(
            request,
            "overview",
            lambda: {
                "alerts": alerts(services),
                "catalogue": services.live.current,
                "newest_at": services.live.current.newest_at,
                "releases": services.releases.history()[:1],
                "rounds": services.coordinator.history(5),
                "latency": services.latency.summary(),
                "backfill": backfill_shown(services.backfill.status()),
            },
        )

    @routes.get("/privacy")
    def privacy(request: Request) -> Response:
        def view() -> dict[str, object]:
            manifest = services.releases.current_manifest()
            return {
                "manifest": manifest,
                "report": report_cost(manifest.recall) if manifest else None,
                "uploads": upload_costs(services),
                "sums": sum_costs(),
                "survivors": SURVIVORS,
            }

        return controller.show(request, "privacy", view)

    @routes.get("/latency")
    def latency(request: Request) -> Response:
        return controller.show(
            request,
            "latency",
            lambda: {
                "latency": services.latency.summary(),
                "sparks": {
                    kind: [entry["total"] for entry in services.latency.last(kind, SPARK_REQUESTS)]
                    for kind in services.latency.summary()
                },
                "whole": end_to_end.last(services.settings.data_dir),
                "readers": end_to_end.READERS,
                "pages": end_to_end.PAGES,
            },
        )

    @routes.get("/latency/measured")
    def latency_measured(request: Request) -> Response:
        def state() -> dict[str, object]:
            found = end_to_end.last(services.settings.data_dir)
            return {"state": found.state if found else "", "figures": {}}

        return controller.answer(request, state)

    @routes.post("/latency/measure")
    def measure_latency(request: Request) -> Response:
        settings = services.settings
        return controller.do(
            request,
            lambda: end_to_end.start(settings.data_dir, url_of(settings.host, settings.port)),
            "/console/latency",
            "measuring",
            place="end-to-end",
        )

    @routes.get("/{path:path}")
    def nowhere(request: Request, path: str) -> Response:
        # An address that accepts only POST is 405, not 404.
        if any(each.matches(request.scope)[0] is Match.PARTIAL for each in routes.routes):
            raise HTTPException(405, headers={"Allow": "POST"})
        return controller.show(
            request, "refused", dict, status_code=404, title=WORDS("nowhere_title"), message=WORDS("nowhere"),
            back="/console", nowhere=True,
        )  # fmt: skip

    return routes
