"""Count displays and clicks: a round that publishes no release and writes rows."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session
from backend.db.tables import NewsRow
from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import RoundImpossible
from backend.federation.protections.registry import resolve
from backend.federation.strategies.joined_sums import NOISE_KEPT
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from backend.popularity.estimate import RELIABILITY_WANTED, devices_needed, known_usage, reliability
from backend.popularity.store import OpenedCount, write_count
from protocol.ids import round_number
from protocol.popularity import CLICKED, COUNTED_NEWS_LIMIT, DISPLAYED, MATERIAL, CountList
from protocol.protections import Protection
from protocol.rounds import RoundManifest

KEPT = timedelta(days=14)
"""Rows of counts older than this are deleted."""


@dataclass(frozen=True)
class Counting:
    """Counts displays and clicks of each of the newest articles since the last count.

    Args:
        displayed_limit: D, displays of one device in one count.
        clicked_limit: B, clicks of one device in one count.
        displayed_unit: w, the weight of a display in a device's vector, a click being 1; a multiple of the sum's
            step.
        window_hours: older displays and clicks are not counted.
        news_limit: N, the number of articles to count.
    """

    displayed_limit: int = 32
    clicked_limit: int = 5
    displayed_unit: float = 3 / 16
    window_hours: float = 24.0
    news_limit: int = COUNTED_NEWS_LIMIT

    def listed(self, news: tuple[str, ...]) -> CountList:
        """Return the list of articles to count, with the limits of each device's contribution."""
        return CountList(
            news=news,
            displayed_limit=self.displayed_limit,
            clicked_limit=self.clicked_limit,
            displayed_unit=self.displayed_unit,
            window_hours=self.window_hours,
        )

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for two numbers for each article. Raises RoundImpossible for an empty pool."""
        news = newest_news(context.engine, self.news_limit)
        if not news:
            raise RoundImpossible("The pool has no news to count.", field="system")
        content = self.listed(news).model_dump_json().encode()
        shapes = {DISPLAYED: (len(news),), CLICKED: (len(news),)}
        return Plan(shapes, {MATERIAL: context.releases.add_blob(content)})

    def why_not(self, system: FederatedSystem, engine: Engine, devices: int) -> str | None:
        """Return why a count by this many devices would give no result, or None.

        The counts of a day add up, and a device's budget pays for about one count a day, so a count is judged by all
        waiting devices and not by its own cohort.
        """
        news = len(newest_news(engine, self.news_limit))
        if not news:
            return None  # `plan` raises
        usage, noise = known_usage(engine, news), resolve(system.protection).noise_variance(1)
        expected = reliability(devices, usage, noise)
        if expected >= RELIABILITY_WANTED:
            return None
        return (
            f"With {devices:,} devices a count of {news:,} news can't be told from its noise (expected reliability "
            f"{expected:.2f}, wanted {RELIABILITY_WANTED:g}); about {devices_needed(usage, noise):,} would be needed. "
            "Nobody's budget is spent; a round started by hand counts all the same."
        )

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Write rows of the opened counts, including negative ones, with their noise variance."""
        listed = CountList.model_validate_json(context.releases.read_blob(manifest.materials[MATERIAL].sha256))
        opened = opened_count(
            listed, total, manifest.protection, round_number=round_number(manifest.round), counted_at=context.clock()
        )

        def rows(session: Session) -> None:
            write_count(session, opened, kept=KEPT)

        facts = {
            "news": len(listed.news),
            "displays": sum(opened.displays.values()),
            "clicks": sum(opened.clicks.values()),
            "displays_sd": opened.displays_variance**0.5,
            "clicks_sd": opened.clicks_variance**0.5,
        }
        return RoundResult(rows=rows, facts=facts)


def opened_count(
    listed: CountList, total: Aggregate, protection: Protection, *, round_number: int, counted_at: datetime
) -> OpenedCount:
    """Return displays and clicks of an opened sum, and the variance of the noise on each number.

    Counts are limited to what this many devices can contribute.
    """
    sums = total.sums()
    noise = resolve(protection).noise_variance(total.count) * total.noise_growth
    deviation, unit = noise**0.5, listed.displayed_unit
    displays = possible_counts(sums[DISPLAYED] / unit, total.count, listed.displayed_limit, deviation / unit)
    clicks = possible_counts(sums[CLICKED], total.count, listed.clicked_limit, deviation)
    return OpenedCount(
        round=round_number,
        counted_at=counted_at,
        devices=total.count,
        displays=dict(zip(listed.news, displays.tolist(), strict=True)),
        clicks=dict(zip(listed.news, clicks.tolist(), strict=True)),
        displays_variance=noise / listed.displayed_unit**2,
        clicks_variance=noise,
    )


def possible_counts(
    counts: NDArray[np.float64], devices: int, each_gives: int, deviation: float
) -> NDArray[np.float64]:
    """Return counts [n] limited to what this many devices can contribute.

    A device can contribute 1 to each article and `each_gives` in total. With noise = NOISE_KEPT standard deviations,
    each number is limited to the range from -noise to the larger of `devices` and noise, and the total likewise. Noise
    on both sides of zero is kept, since cutting it off on one side would raise the counts of articles that nobody
    clicked. An honest count changes with a probability of 0.3 %, and its mean is accurate to 0.0004 standard
    deviations; a forged one adds at most `devices` (or that much noise) to an article.
    """
    noise = NOISE_KEPT * deviation
    within = np.clip(counts, -noise, max(float(devices), noise))
    noise *= math.sqrt(len(counts))
    total = float(within.sum())
    excess = total - min(max(total, -noise), max(float(devices * each_gives), noise))
    return np.asarray(within - excess / len(counts))


def newest_news(engine: Engine, limit: int) -> tuple[str, ...]:
    """Return the ids of the pool's newest articles, newest first."""
    with reading_session(engine) as session:
        found = session.scalars(
            select(NewsRow.id)
            .where(NewsRow.taken_down_at.is_(None))
            .order_by(NewsRow.published_at.desc(), NewsRow.number.desc())
            .limit(limit)
        )
        return tuple(found)
