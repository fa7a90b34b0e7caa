"""The pool: sources, runs, sections, duplicates, and taking news down."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.news.pool import IngestSummary

FOUND_SHOWN = 50
RUNS_SHOWN = 20


def router(controller: ConsoleController) -> APIRouter:
    """Routes of the pool page."""
    services = controller.services
    routes = APIRouter()

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
                "query": q.strip(),
                "found": found[:FOUND_SHOWN],
                "found_count": len(found),
            }

        return controller.show(request, "pool", view)

    @routes.post("/pool/take-down")
    def take_down(request: Request, news_id: Annotated[str, Form(min_length=1, max_length=80)]) -> Response:
        return controller.do(request, lambda: services.pool.take_down(news_id), "/console/pool", "taken-down")

    return routes
