"""The recall page: what report modes find and what they cost, for the current release and as last measured."""

import math

from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController
from backend.measurements.frontier import (
    PUBLISHED,
    PUBLISHED_BY_POOL,
    drawing,
    drawn_pools,
    measured,
    measured_gains,
    published_gains,
)
from backend.measurements.published import published
from protocol.recall_frontier import USUAL_BYTES, USUAL_EPSILON, ListChoice, packaged_frontier
from protocol.releases import Codebook, ReleaseManifest


def _figures(book: Codebook) -> dict[str, float]:
    """A codebook's figures. truth: the probability that randomised response over K codes sends the true code."""
    truth = 1 / (1 + (book.size - 1) * math.exp(-book.epsilon))
    return {"size": book.size, "epsilon": book.epsilon, "truth": truth, "size_bytes": book.prototypes.size_bytes}


def _chosen(manifest: ReleaseManifest) -> ListChoice | None:
    """What devices in mode `auto` choose under this release with the default limits; None without a pool size."""
    if manifest.news is None:
        return None
    return packaged_frontier().choose(
        manifest.news,
        epsilon_limit=USUAL_EPSILON,
        bytes_limit=USUAL_BYTES,
        codebooks=[(book.size, book.epsilon) for book in manifest.recall.codebooks],
        pool_codes=manifest.recall.pool_codes,
    )


def router(controller: ConsoleController) -> APIRouter:
    routes = APIRouter()

    @routes.get("/recall")
    def recall(request: Request) -> Response:
        def view() -> dict[str, object]:
            found, record, by_pool = measured(), published(PUBLISHED), published(PUBLISHED_BY_POOL)
            gains = measured_gains(found.rows) if found else published_gains(record) if record else []
            manifest = controller.services.releases.current_manifest()
            return {
                "codebooks": [_figures(book) for book in manifest.recall.codebooks] if manifest else [],
                "measured": found,
                "drawing": drawing(gains) if gains else None,
                "published": record,
                "pools": drawn_pools(by_pool) if by_pool else (),
                "by_pool": by_pool,
                "auto": _chosen(manifest) if manifest else None,
            }

        return controller.show(request, "recall", view)

    return routes
