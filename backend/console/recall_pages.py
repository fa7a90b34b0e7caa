"""What recall finds at what price: the current release's codebooks, and the frontier that the bench last measured."""

from __future__ import annotations

import math

from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController
from backend.measurements.frontier import PUBLISHED, drawing, measured, measured_gains, published_gains
from backend.measurements.published import published
from device_app.wire.releases import Codebook


def _told(book: Codebook) -> dict[str, float]:
    """A codebook's figures; the truth is what randomised response over its K codes leaves of a report."""
    truth = 1 / (1 + (book.size - 1) * math.exp(-book.epsilon))
    return {"size": book.size, "epsilon": book.epsilon, "truth": truth, "size_bytes": book.prototypes.size_bytes}


def router(controller: ConsoleController) -> APIRouter:
    """The recall page."""
    routes = APIRouter()

    @routes.get("/recall")
    def recall(request: Request) -> Response:
        def view() -> dict[str, object]:
            found, record = measured(), published(PUBLISHED)
            gains = measured_gains(found.rows) if found else published_gains(record) if record else []
            manifest = controller.services.releases.current_manifest()
            return {
                "codebooks": [_told(book) for book in manifest.recall.codebooks] if manifest else [],
                "measured": found,
                "drawing": drawing(gains) if gains else None,
                "published": record,
            }

        return controller.show(request, "recall", view)

    return routes
