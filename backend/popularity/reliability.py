"""What a count is expected to tell before it is opened: how much of the differences between its clicks is no noise.

For news displayed S times under a click rate p, log-normal over the news with a mean of `rate` and a standard deviation
of log p of `spread`, the clicks counted vary by Var(p) S^2 from news to news, and by E(p) S + V from chance and the
noise of the sum. Their reliability is the share of the first in both. S and V grow with the devices, so it is
n / (n + n_half), and n_half devices have a reliability of one half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Engine, select

from backend.db.engine import reading_session
from backend.db.tables_federation import CountRoundRow, NewsCountRow
from backend.popularity.estimate import TYPICAL_RATE, Counted, exposure, usual_rates

RELIABILITY_WANTED = 0.5
"""Less is not worth a reader's budget: on MIND's impressions, noise that leaves a reliability of about .25 ranks as no
counts do (34 clicks, AUC .647 against .646), one that leaves .55 keeps half of what exact counts give (16 clicks, .670
of .688)."""
TYPICAL_DISPLAYS = 15.0
"""A device's displays of one day, where nothing is known; MIND's readers have 14.8 in an impression."""
TYPICAL_CONCENTRATION = 10.0
"""News asked about for one that counts, since few news have most displays: 557 / 57 on MIND."""
TYPICAL_SPREAD = 0.9
SURE = 5.0
"""Standard deviations of its own noise that a past count's figure must be from zero to be believed."""


@dataclass(frozen=True)
class Usage:
    """How devices read.

    Args:
        displays: of one device in one count.
        alike: as how many equally displayed news the displays are concentrated (inverse Simpson index).
        rate: clicks of a display, on average over displays.
        spread: standard deviation of log rate between news.
    """

    displays: float
    alike: float
    rate: float
    spread: float


def typical_usage(news: int) -> Usage:
    """Where nothing is known but how many news are asked about."""
    return Usage(TYPICAL_DISPLAYS, max(1.0, news / TYPICAL_CONCENTRATION), TYPICAL_RATE, TYPICAL_SPREAD)


def known_usage(engine: Engine, news: int) -> Usage:
    """Of the newest count, each figure as far as that count's noise lets it be told; `typical_usage` for the rest."""
    typical = typical_usage(news)
    with reading_session(engine) as session:
        made = session.scalars(select(CountRoundRow).order_by(CountRoundRow.round.desc()).limit(1)).first()
        if made is None:
            return typical
        rows = session.execute(
            select(NewsCountRow.displays, NewsCountRow.clicks).where(NewsCountRow.round == made.round)
        ).all()
        devices, variances = made.devices, (made.displays_variance, made.clicks_variance)
    if not rows or devices < 1:
        return typical
    displays, clicks = np.array([tuple(row) for row in rows], dtype=np.float64).T
    n, (displays_variance, clicks_variance) = len(displays), variances
    if displays.sum() <= SURE * math.sqrt(n * displays_variance):
        return typical
    per_device = float(displays.sum()) / devices
    rate = typical.rate
    if clicks.sum() > SURE * math.sqrt(n * clicks_variance):
        rate = min(1.0, float(clicks.sum() / displays.sum()))
    squares = float(np.square(displays).sum()) - n * displays_variance
    if squares <= SURE * displays_variance * math.sqrt(2 * n):
        return Usage(per_device, typical.alike, rate, typical.spread)
    alike = max(1.0, min(float(n), float(displays.sum()) ** 2 / squares))
    counted = Counted(clicks, displays, np.full(n, clicks_variance), np.full(n, displays_variance))
    return Usage(per_device, alike, rate, usual_rates(counted, exposure(counted)).spread)


def reliability(devices: int, usage: Usage, noise_variance: float) -> float:
    """From 0 to 1, of a count by so many devices; noise_variance: of one device's share, in clicks squared."""
    return devices / (devices + half_reliable(usage, noise_variance))


def devices_needed(usage: Usage, noise_variance: float, wanted: float = RELIABILITY_WANTED) -> int:
    """How many devices' count has that reliability; rounded to two digits, since it is an estimate."""
    exact = half_reliable(usage, noise_variance) * wanted / (1 - wanted)
    step = int(10 ** max(0, math.floor(math.log10(max(1.0, exact))) - 1))
    return max(1, math.ceil(exact / step) * step)


def half_reliable(usage: Usage, noise_variance: float) -> float:
    """n_half: the devices whose count has a reliability of one half."""
    each = usage.displays / usage.alike  # displays of one news by one device
    signal = usage.rate**2 * math.expm1(usage.spread**2) * each**2
    return math.inf if signal <= 0 else (usage.rate * each + noise_variance) / signal
