"""Estimates how likely an article is to be opened by any reader.

The estimate uses the article's age, editorial weight and private counts.

Popularity dominates recall (docs/results/recall.md). Recency and editorial weight are known before anything is counted;
private counts lift articles that are clicked more often than usual when displayed.

Reliability of a count before it is opened: how much of the differences between its clicks is signal. For articles
displayed S times under a click rate p, log-normal over the articles with a mean of `rate` and a standard deviation of
log p of `spread`, the counted clicks vary by Var(p) S^2 between articles, and by E(p) S + V from chance and the noise
of the sum. The reliability is the share of the first term in their total. S and V grow with the number of devices n, so
it is n / (n + n_half), and n_half devices have a reliability of one half.

Click rates from noisy counts: a noisy count may be negative, and is used as it is, since cutting it off at zero would
lift every article that nobody clicked by the mean of the positive noise. Each count is evidence with a Gaussian
likelihood whose variance includes the noise, a prior describes the usual rates, and the estimate is the posterior mean
of log rate. Without evidence that is the prior's mean; with much evidence it is the log of clicks over displays.

Symbols, for n articles: C clicks and S displays (sums over rounds, decayed), VC and VS the variances of their noise, p
the rate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, select

from backend.db.engine import reading_session
from backend.db.tables import CountRoundRow, NewsCountRow
from protocol.popularity import LIFT_REACH

SHARPNESS = 4.0
"""s: how much content counts against popularity, for unit vectors; chosen by validation for the untrained encoder."""
HALF_LIFE_HOURS = 24.0
OLD_SHARE = 0.02
"""Lower bound of recency: the oldest articles stay within reach of a reader who is interested in their subject."""
WEIGHT_FLOOR = 0.2


Moments = NDArray[np.datetime64]
"""UTC times in microseconds."""


def utc_moments(times: Sequence[datetime]) -> Moments:
    """Convert aware datetimes to an array."""
    return np.array([time.astimezone(UTC).replace(tzinfo=None) for time in times], dtype="datetime64[us]")


def log_popularity(
    published_at: Moments,
    weights: NDArray[np.floating],
    now: datetime,
    *,
    lifts: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """log pop(i), float32 [n], up to a constant: log(recency) + log(editorial weight) + lift.

    published_at and weights [n] (0 to 1) form the prior; lifts [n] are those of `lifts`, 0 if nothing is known.
    Articles dated in the future count as published now.
    """
    ages_hours = (utc_moments([now])[0] - published_at).astype(np.int64) / 1e6 / 3_600
    recency = np.maximum(0.5 ** (np.maximum(ages_hours, 0.0) / HALF_LIFE_HOURS), OLD_SHARE)
    logs: NDArray[np.float64] = np.log(recency * (WEIGHT_FLOOR + (1 - WEIGHT_FLOOR) * weights.astype(np.float64)))
    return (logs if lifts is None else logs + lifts).astype(np.float32)


RELIABILITY_WANTED = 0.5
"""Minimum reliability worth a reader's privacy budget. On MIND's impressions, noise that leaves a reliability of about
.25 ranks like no counts (34 clicks, AUC .647 against .646); .55 keeps half of the gain of exact counts (16 clicks, .670
of .688)."""
TYPICAL_DISPLAYS = 15.0
"""Assumed displays per device and day; MIND's readers have 14.8 in an impression."""
TYPICAL_CONCENTRATION = 10.0
"""Articles counted per equally displayed article, since few articles have most displays: 557 / 57 on MIND."""
TYPICAL_SPREAD = 0.9
SURE = 5.0
"""Minimum distance from zero, in standard deviations of its noise, at which a past count's figure is used."""


@dataclass(frozen=True)
class Usage:
    """How devices read.

    Args:
        displays: displays of one device in one count.
        alike: number of equally displayed articles with the same concentration of displays (inverse Simpson index).
        rate: clicks per display, averaged over displays.
        spread: standard deviation of log rate between articles.
    """

    displays: float
    alike: float
    rate: float
    spread: float


def typical_usage(news: int) -> Usage:
    """Assumed usage if only the number of counted articles is known."""
    return Usage(TYPICAL_DISPLAYS, max(1.0, news / TYPICAL_CONCENTRATION), TYPICAL_RATE, TYPICAL_SPREAD)


def known_usage(engine: Engine, news: int) -> Usage:
    """Usage in the newest count, for each figure that its noise allows.

    `typical_usage` for the rest.
    """
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
    counted = NoisyCounts(clicks, displays, np.full(n, clicks_variance), np.full(n, displays_variance))
    return Usage(per_device, alike, rate, usual_rates(counted, exposure(counted)).spread)


def reliability(devices: int, usage: Usage, noise_variance: float) -> float:
    """Reliability of a count by `devices` devices, 0 to 1.

    noise_variance: variance of one device's share, in clicks squared.
    """
    return devices / (devices + half_reliable(usage, noise_variance))


def devices_needed(usage: Usage, noise_variance: float, wanted: float = RELIABILITY_WANTED) -> int:
    """How many devices' count has that reliability, rounded to two digits, since it is an estimate."""
    exact = half_reliable(usage, noise_variance) * wanted / (1 - wanted)
    step = int(10 ** max(0, math.floor(math.log10(max(1.0, exact))) - 1))
    return max(1, math.ceil(exact / step) * step)


def half_reliable(usage: Usage, noise_variance: float) -> float:
    """n_half: the number of devices whose count has a reliability of one half."""
    each = usage.displays / usage.alike  # displays of one article by one device
    signal = usage.rate**2 * math.expm1(usage.spread**2) * each**2
    return math.inf if signal <= 0 else (usage.rate * each + noise_variance) / signal


Floats = NDArray[np.float64]

TYPICAL_RATE = 0.1
"""Assumed clicks per display if nothing is known."""
RATES = np.exp(np.linspace(np.log(0.01), np.log(0.6), 13))
SPREADS = (0.3, 0.6, 0.9, 1.2)
"""Candidate standard deviations of log rate, from which the data choose."""
REACH = 3.5
STEPS = 57
"""Grid points for log p, from -REACH to REACH around the usual rate."""
TOPIC_SHARE = 0.5
"""Share of the variance of log rate that topics explain, and articles of a topic have in common."""


@dataclass(frozen=True)
class NoisyCounts:
    """Counts of n articles: clicks and displays (float64 [n], unbiased, perhaps negative) and their noise variances."""

    clicks: Floats
    displays: Floats
    clicks_variance: Floats
    displays_variance: Floats

    def __post_init__(self) -> None:
        shapes = {each.shape for each in vars(self).values()}
        if len(shapes) != 1 or self.clicks.ndim != 1:
            raise ValueError(f"clicks, displays and their variances must be [n] alike, got {sorted(shapes)}")
        if not all(np.isfinite(each).all() for each in vars(self).values()):
            raise ValueError("clicks, displays and their variances must be finite")
        if (self.clicks_variance < 0).any() or (self.displays_variance < 0).any():
            raise ValueError("clicks_variance, displays_variance: must not be negative")

    def __len__(self) -> int:
        return len(self.clicks)


@dataclass(frozen=True)
class UsualRates:
    """The usual rates: exp(N(log rate, spread^2))."""

    rate: float
    spread: float


@dataclass(frozen=True)
class Exposure:
    """Displays with their noise reduced: S~ [n], 0 or more, and the remaining variance."""

    displays: Floats
    variance: Floats


def exposure(counted: NoisyCounts, among: NoisyCounts | None = None) -> Exposure:
    """Shrink every S towards the mean by the share of its variance that is noise: E[S | noisy S] for Gaussian S.

    Mean and variance are those of `among`, by default of these counts themselves. S~ = m + b (S - m), b = t^2 / (t^2 +
    VS), t^2 the variance of S minus that of the noise. It is linear, so a sum of S~ is unbiased. Only values that
    remain below zero then count as never displayed, and carry no information on a rate.
    """
    if not len(counted):
        return Exposure(np.zeros(0), np.zeros(0))
    among = among or counted
    mean = float(among.displays.mean())
    true = max(0.0, float(among.displays.var() - among.displays_variance.mean()))
    variance = true + counted.displays_variance
    kept = np.divide(true, variance, out=np.ones_like(variance), where=variance > 0)
    return Exposure(np.maximum(mean + kept * (counted.displays - mean), 0.0), kept * counted.displays_variance)


def usual_rates(counted: NoisyCounts, shown: Exposure) -> UsualRates:
    """The rate and spread that maximise the marginal likelihood of the counts (empirical Bayes).

    A few pseudo-clicks support TYPICAL_RATE, which decides if the counts are all noise.
    """
    seen = shown.displays > 0
    if not seen.any():
        return UsualRates(TYPICAL_RATE, SPREADS[1])
    few = NoisyCounts(*(each[seen] for each in vars(counted).values()))
    exposed = Exposure(shown.displays[seen], shown.variance[seen])
    best, chosen = -np.inf, UsualRates(TYPICAL_RATE, SPREADS[1])
    for rate in RATES:
        for spread in SPREADS:
            usual = UsualRates(float(rate), spread)
            logs, prior = _grid(usual, spread)
            likely = _log_likelihood(few, exposed, logs, np.full(len(few), rate)) + np.log(prior)
            score = float(np.logaddexp.reduce(likely, axis=1).sum()) - 0.5 * np.log(rate / TYPICAL_RATE) ** 2
            if score > best:
                best, chosen = score, usual
    return chosen


def log_lifts(
    counted: NoisyCounts,
    topics: NDArray[np.int64] | None = None,
    *,
    asked: NDArray[np.bool_] | None = None,
    usual: UsualRates | None = None,
) -> Floats:
    """Return E[log p] - log(usual rate), [n]: how much more likely than usual each article is to be clicked when
    displayed.

    topics [n] number each article's topic: articles of topics that are clicked more start higher, which is all that is
    known of articles too recent to have been displayed (a content prior). asked [n] marks the counted articles; by
    default all.
    """
    asked = np.ones(len(counted), dtype=np.bool_) if asked is None else asked
    if not asked.any():
        return np.zeros(len(counted))
    measured = NoisyCounts(*(each[asked] for each in vars(counted).values()))
    shown = exposure(measured)
    usual = usual or usual_rates(measured, shown)
    before = np.zeros(len(counted))
    spread = usual.spread
    if topics is not None:
        of_topic = np.zeros(int(topics.max()) + 1)
        known = topic_lifts(measured, shown, topics[asked], usual)
        of_topic[: len(known)] = known
        before = of_topic[topics]
        spread = usual.spread * np.sqrt(1 - TOPIC_SHARE)
    found = before
    found[asked] = posterior_lifts(measured, shown, before[asked], spread, usual)
    return found


def posterior_lifts(counted: NoisyCounts, shown: Exposure, before: Floats, spread: float, usual: UsualRates) -> Floats:
    """Lifts [n] if the prior of log p is N(log(usual rate) + before_i, spread^2).

    Two passes, since the Poisson part of a count's variance depends on its own rate, which the first pass estimates.
    """
    logs = np.log(usual.rate) + np.linspace(-REACH, REACH, STEPS)  # [G]
    centre = np.log(usual.rate) + before  # [n]
    found = centre
    for _ in range(2):
        likely = _log_likelihood(counted, shown, logs, np.exp(found))
        likely -= 0.5 * ((logs - centre[:, None]) / spread) ** 2
        weights = np.exp(likely - likely.max(axis=1, keepdims=True))
        found = np.asarray(weights @ logs / weights.sum(axis=1), dtype=np.float64)
    return np.asarray(found - np.log(usual.rate))


def topic_lifts(counted: NoisyCounts, shown: Exposure, topics: NDArray[np.int64], usual: UsualRates) -> Floats:
    """Lifts of whole topics, [T], from their articles' counts added up, since the noise of many counts averages out."""
    count = int(topics.max()) + 1

    def added(each: Floats) -> Floats:
        return np.bincount(topics, each, minlength=count).astype(np.float64)

    totals = NoisyCounts(*(added(each) for each in vars(counted).values()))
    exposed = Exposure(added(shown.displays), added(shown.variance))
    return posterior_lifts(totals, exposed, np.zeros(count), usual.spread * np.sqrt(TOPIC_SHARE), usual)


def _grid(usual: UsualRates, spread: float) -> tuple[Floats, Floats]:
    offsets = np.linspace(-REACH, REACH, STEPS)
    prior = np.exp(-0.5 * (offsets / spread) ** 2)
    return np.log(usual.rate) + offsets, prior / prior.sum()


def _log_likelihood(counted: NoisyCounts, shown: Exposure, logs: Floats, rates: Floats) -> Floats:
    """log N(C; p S~, v) at every point of the grid, [n, G], v = p_i S~ + VC + p_i^2 VS~ at the given rates p_i [n].

    v is constant along the grid: with v at the grid's own p, a count of zero would make p = 0 infinitely likely.
    """
    variance = rates * shown.displays + counted.clicks_variance + rates**2 * shown.variance  # [n]
    off = counted.clicks[:, None] - shown.displays[:, None] * np.exp(logs)[None, :]  # [n, G]
    informed = (shown.displays > 0) & (variance > 0)
    safe = np.where(informed, variance, 1.0)
    found = -0.5 * (off**2 / safe[:, None] + np.log(safe)[:, None])
    return np.where(informed[:, None], found, 0.0)


@dataclass(frozen=True)
class Lifts:
    """How much more often than usual articles are clicked when displayed.

    version: the last counted round, 0 for none. values [n]: the log of that ratio, from -LIFT_REACH to LIFT_REACH; 0 if
    nothing is known.
    """

    version: int
    values: NDArray[np.float32]


class CountSource(Protocol):
    """The part of `backend.popularity.store.CountRepository` that is read here."""

    def version(self) -> int:
        """The last counted round."""

    def counted(self, numbers: NDArray[np.int64], now: datetime) -> tuple[NoisyCounts, NDArray[np.bool_]]:
        """Decayed sums, and which articles were counted."""


def lifts(counts: CountSource | None, numbers: NDArray[np.int64], topics: Sequence[str], now: datetime) -> Lifts:
    """Lifts [n] of the articles with these numbers and topics."""
    version = 0 if counts is None else counts.version()
    if counts is None or not version or not len(numbers):
        return Lifts(version, np.zeros(len(numbers), dtype=np.float32))
    counted, is_counted = counts.counted(numbers, now)
    place = {topic: number for number, topic in enumerate(dict.fromkeys(topics))}
    of_topic = np.fromiter(map(place.__getitem__, topics), dtype=np.int64, count=len(numbers))
    found = log_lifts(counted, of_topic, asked=is_counted)
    return Lifts(version, np.clip(found, -LIFT_REACH, LIFT_REACH).astype(np.float32))
