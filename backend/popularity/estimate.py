"""How likely a display is to be clicked, from counts with known noise: a posterior, so that noise can't look popular.

A noisy count may be negative, and is used as it is: cutting it off at zero would lift every piece of news that nobody
clicked by the mean of the positive noise. Instead each count is evidence of a Gaussian likelihood whose variance holds
the noise, a prior says what rates are usual, and what comes out is the posterior's mean of log rate. Without evidence
that is the prior's, so nothing known means nothing said; with much it's the log of clicks over displays.

Symbols, for n news: C clicks and S displays (sums over rounds, decayed), VC and VS the variances of their noise, p the
rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.wire.popularity import LIFT_REACH

Floats = NDArray[np.float64]

TYPICAL_RATE = 0.1
"""One display in ten is clicked, where nothing is known."""
RATES = np.exp(np.linspace(np.log(0.01), np.log(0.6), 13))
SPREADS = (0.3, 0.6, 0.9, 1.2)
"""Usual rates and standard deviations of log rate that the data choose among."""
REACH = 3.5
STEPS = 57
"""log p is looked at on so many points, from -REACH to REACH around the usual rate."""
TOPIC_SHARE = 0.5
"""Of the variance of log rate that topics explain; what news of a topic share is known before a piece of news is."""


@dataclass(frozen=True)
class Counted:
    """n news: clicks and displays (float64 [n], unbiased, perhaps negative) and the variances of the noise on them."""

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
class Usual:
    """What rates are usual: exp(N(log rate, spread^2))."""

    rate: float
    spread: float


@dataclass(frozen=True)
class Exposure:
    """Displays without their noise as far as that can be told: S~ [n], 0 or more, and the variance left in them."""

    displays: Floats
    variance: Floats


def exposure(counted: Counted, among: Counted | None = None) -> Exposure:
    """Every S drawn towards their mean by the share of its variance that is noise: E[S | noisy S] for Gaussian S.

    Mean and variance are those of `among`, by default of these counts themselves.

    S~ = m + b (S - m), b = t^2 / (t^2 + VS), t^2 the variance of S less that of the noise. Linear, so a sum of S~ is
    right on average. Only what stays below zero then counts as never displayed, and says nothing of a rate.
    """
    if not len(counted):
        return Exposure(np.zeros(0), np.zeros(0))
    among = among or counted
    mean = float(among.displays.mean())
    true = max(0.0, float(among.displays.var() - among.displays_variance.mean()))
    whole = true + counted.displays_variance
    kept = np.divide(true, whole, out=np.ones_like(whole), where=whole > 0)
    return Exposure(np.maximum(mean + kept * (counted.displays - mean), 0.0), kept * counted.displays_variance)


def usual_rates(counted: Counted, shown: Exposure) -> Usual:
    """The rate and spread under which the counts are likeliest (empirical Bayes, maximum marginal likelihood).

    TYPICAL_RATE is worth a few clicks of evidence for itself, which decides where the counts are all noise.
    """
    seen = shown.displays > 0
    if not seen.any():
        return Usual(TYPICAL_RATE, SPREADS[1])
    few = Counted(*(each[seen] for each in vars(counted).values()))
    exposed = Exposure(shown.displays[seen], shown.variance[seen])
    best, chosen = -np.inf, Usual(TYPICAL_RATE, SPREADS[1])
    for rate in RATES:
        for spread in SPREADS:
            usual = Usual(float(rate), spread)
            logs, prior = _grid(usual, spread)
            likely = _log_likelihood(few, exposed, logs, np.full(len(few), rate)) + np.log(prior)
            whole = float(np.logaddexp.reduce(likely, axis=1).sum()) - 0.5 * np.log(rate / TYPICAL_RATE) ** 2
            if whole > best:
                best, chosen = whole, usual
    return chosen


def log_lifts(
    counted: Counted,
    topics: NDArray[np.int64] | None = None,
    *,
    asked: NDArray[np.bool_] | None = None,
    usual: Usual | None = None,
) -> Floats:
    """E[log p] - log(usual rate), [n]: how much more likely than usual each piece of news is to be clicked when shown.

    topics [n] number each one's topic: news of topics that are clicked more start higher, which is all that is known of
    news too fresh to have been shown (a content prior). asked [n] says which were counted at all; by default all.
    """
    asked = np.ones(len(counted), dtype=np.bool_) if asked is None else asked
    if not asked.any():
        return np.zeros(len(counted))
    heard = Counted(*(each[asked] for each in vars(counted).values()))
    shown = exposure(heard)
    usual = usual or usual_rates(heard, shown)
    before = np.zeros(len(counted))
    spread = usual.spread
    if topics is not None:
        of_topic = np.zeros(int(topics.max()) + 1)
        known = topic_lifts(heard, shown, topics[asked], usual)
        of_topic[: len(known)] = known
        before = of_topic[topics]
        spread = usual.spread * np.sqrt(1 - TOPIC_SHARE)
    found = before
    found[asked] = posterior_lifts(heard, shown, before[asked], spread, usual)
    return found


def posterior_lifts(counted: Counted, shown: Exposure, before: Floats, spread: float, usual: Usual) -> Floats:
    """Lifts [n] where the prior of log p is N(log(usual rate) + before_i, spread^2).

    Two passes, since the Poisson part of a count's variance is that of its own rate, which the first pass finds.
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


def topic_lifts(counted: Counted, shown: Exposure, topics: NDArray[np.int64], usual: Usual) -> Floats:
    """The same of whole topics, [T]: their news' counts added up, since the noise of many counts evens out."""
    count = int(topics.max()) + 1

    def added(each: Floats) -> Floats:
        return np.bincount(topics, each, minlength=count).astype(np.float64)

    whole = Counted(*(added(each) for each in vars(counted).values()))
    exposed = Exposure(added(shown.displays), added(shown.variance))
    return posterior_lifts(whole, exposed, np.zeros(count), usual.spread * np.sqrt(TOPIC_SHARE), usual)


def _grid(usual: Usual, spread: float) -> tuple[Floats, Floats]:
    offsets = np.linspace(-REACH, REACH, STEPS)
    prior = np.exp(-0.5 * (offsets / spread) ** 2)
    return np.log(usual.rate) + offsets, prior / prior.sum()


def _log_likelihood(counted: Counted, shown: Exposure, logs: Floats, rates: Floats) -> Floats:
    """log N(C; p S~, v) at every point of the grid, [n, G], v = p_i S~ + VC + p_i^2 VS~ at the given rates p_i [n].

    v doesn't vary along the grid: with v at the grid's own p a count of zero would make p = 0 infinitely likely.
    """
    variance = rates * shown.displays + counted.clicks_variance + rates**2 * shown.variance  # [n]
    off = counted.clicks[:, None] - shown.displays[:, None] * np.exp(logs)[None, :]  # [n, G]
    informed = (shown.displays > 0) & (variance > 0)
    safe = np.where(informed, variance, 1.0)
    found = -0.5 * (off**2 / safe[:, None] + np.log(safe)[:, None])
    return np.where(informed[:, None], found, 0.0)


@dataclass(frozen=True)
class Lifts:
    """version: the last counted round, 0 for none. values [n]: log of how much more often each piece of news is clicked
    when displayed than news usually is, from -LIFT_REACH to LIFT_REACH; 0 where nothing is known."""

    version: int
    values: NDArray[np.float32]


class Counts(Protocol):
    """The part of `backend.popularity.store.CountRepository` that is read here."""

    def version(self) -> int:
        """The last counted round."""
        ...

    def counted(self, numbers: NDArray[np.int64], now: datetime) -> tuple[Counted, NDArray[np.bool_]]:
        """Decayed sums, and which news were asked about."""
        ...


def lifts(counts: Counts | None, numbers: NDArray[np.int64], topics: Sequence[str], now: datetime) -> Lifts:
    """Of news with these numbers and topics, [n]."""
    version = 0 if counts is None else counts.version()
    if counts is None or not version or not len(numbers):
        return Lifts(version, np.zeros(len(numbers), dtype=np.float32))
    counted, asked = counts.counted(numbers, now)
    place = {topic: number for number, topic in enumerate(dict.fromkeys(topics))}
    of_topic = np.fromiter(map(place.__getitem__, topics), dtype=np.int64, count=len(numbers))
    found = log_lifts(counted, of_topic, asked=asked)
    return Lifts(version, np.clip(found, -LIFT_REACH, LIFT_REACH).astype(np.float32))
