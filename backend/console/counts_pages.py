"""The page of private counts: the published sums, their noise, and their effect on articles."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import NormalDist

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response

from backend.console.controller import ConsoleController, Values
from backend.popularity.store import CountRepository
from backend.recall.catalogue import Catalogue

SHOWN = 40
INTERVAL = 1.96
"""95 % of the noise lies within this many standard deviations."""
MISTAKEN = 0.05
"""Probability that noise alone gives any article a rank."""


@dataclass(frozen=True)
class CountedNews:
    """One article: decayed displays and clicks, and the 95 % range of the noise of each.

    clicks_threshold: more clicks than this can be distinguished from noise.
    """

    title: str
    section: str
    displays: float
    displays_within: float
    clicks: float
    clicks_within: float
    times_usual: float
    clicks_threshold: float

    @property
    def exceeds_noise(self) -> bool:
        """Whether noise alone lifts any article this far in fewer than 5 of 100 counts."""
        return self.clicks > self.clicks_threshold


def router(controller: ConsoleController) -> APIRouter:
    services = controller.services
    routes = APIRouter()

    @routes.get("/counts")
    def counts(request: Request) -> Response:
        def view() -> Values:
            now = datetime.now(UTC)
            return {
                "made": services.counts.made(),
                **_ranked(counted_news(services.live.current, services.counts, now)),
                "half_life_hours": services.counts.half_life_hours,
            }

        return controller.show(request, "counts", view)

    return routes


def counted_news(catalogue: Catalogue, counts: CountRepository, now: datetime) -> list[CountedNews]:
    """All counted articles, those most lifted by counts first; none before the first count."""
    if not len(catalogue) or not catalogue.counted:
        return []
    counted, is_counted = counts.counted(catalogue.keys, now)
    rows = np.flatnonzero(is_counted)
    # Bonferroni correction: among hundreds of articles, noise lifts some further than is likely for a single one.
    least = NormalDist().inv_cdf(1 - MISTAKEN / max(1, len(rows)))
    found = []
    for row in rows[np.argsort(-catalogue.lifts[rows], kind="stable")].tolist():
        card = json.loads(catalogue.cards[row])
        found.append(
            CountedNews(
                title=card["title"],
                section=card["section"],
                displays=float(counted.displays[row]),
                displays_within=INTERVAL * float(np.sqrt(counted.displays_variance[row])),
                clicks=float(counted.clicks[row]),
                clicks_within=INTERVAL * float(np.sqrt(counted.clicks_variance[row])),
                times_usual=float(np.exp(catalogue.lifts[row])),
                clicks_threshold=least * float(np.sqrt(counted.clicks_variance[row])),
            )
        )
    return found


def _ranked(counted: list[CountedNews]) -> Values:
    """The articles that can be distinguished from noise, in order, and the others by title."""
    ranked = [row for row in counted if row.exceeds_noise]
    unranked = sorted((row for row in counted if not row.exceeds_noise), key=lambda row: row.title)
    return {"ranked": ranked[:SHOWN], "unranked": unranked[:SHOWN], "unranked_count": len(unranked)}
