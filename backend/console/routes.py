"""The operator's pages: overview, pool, counts, releases, recall, rounds, quality, privacy, latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response
from starlette.routing import Match

from backend.console import counts_pages, pool_pages, quality_pages, recall_pages, release_pages, round_pages
from backend.console.alerts import alerts
from backend.console.auth import is_own_form, is_token, let_in
from backend.console.controller import ConsoleController
from backend.console.declared import SURVIVORS, report_cost, sum_costs, upload_costs
from backend.console.purposes import backfill_shown
from backend.console.renderer import TemplateRenderer
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("backend.console", "words.toml")

if TYPE_CHECKING:
    from backend.composition import Services

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
            },
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
