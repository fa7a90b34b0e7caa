"""Private hourly counts of clicks in place of plain ones, and what can be estimated from them.

In each hour a device contributes one click to a secure sum with noise, in at most HOURS_A_DAY hours of a UTC day. The
sum of an hour is known from the next hour on. Estimates follow `backend.popularity.estimate`: a count is evidence on
how much more an article is clicked than articles of its age usually are, and the usual curve is the running mean of
the private counts themselves.

Formal guarantees: the sum of an hour has rho-zero-concentrated differential privacy for exchanging all that a reader
clicked in it (`protocol.concentrated.rho_of_sum`), and those of a day together HOURS_A_DAY times that. Here noise is
drawn from a seed, once for each sum, and is normal instead of the sum of the devices' discrete shares.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.popularity.estimate import Exposure, NoisyCounts, UsualRates, posterior_lifts
from experiments.real_clicks.features import HOUR, LOG_SCALE, WINDOWS_HOURS, Floats, Integers, Log
from protocol.concentrated import epsilon_of, rho_of_sum

HOURS_A_DAY = 6
DAY_HOURS = 24
LEAD_HOURS = 48
"""Counting begins this long before the first impression."""
SPREAD = 1.2
"""Standard deviation of the log of clicks over the usual: the largest of `backend.popularity.estimate.SPREADS`."""
AGES_HOURS = np.array([0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 36, 48, 72, 96, 168])
"""Lower bounds of the ages that share a usual count."""
LEAST_USUAL = 1e-3
MOVED = math.sqrt(2)
"""L2 distance between two vectors with one click each, given that no number is negative."""
FRACTION_BITS = 12
CHUNK = 20_000


@dataclass(frozen=True)
class HourlyNoise:
    """Noise in the sum of one hour, to which every one of `devices` adds its share.

    sd is in clicks. Raises ValueError for a negative sd.
    """

    sd: float
    devices: int
    delta: float = 1e-6

    def __post_init__(self) -> None:
        if self.sd < 0:
            raise ValueError(f"sd: must not be negative, got {self.sd}")

    def epsilon(self, articles: int, hours: int = 1) -> float:
        """Return epsilon for all clicks of a reader in this many hours; infinite without noise."""
        if not self.sd:
            return math.inf
        step = 2.0**-FRACTION_BITS
        share = max(1, round(self.sd / step / math.sqrt(self.devices)))
        return epsilon_of(hours * rho_of_sum(MOVED / step, share, self.devices, articles), self.delta)


@dataclass(frozen=True)
class HourlyCounts:
    """Opened counts: clicks float64 [hours, articles], the number of the first hour since 1970, the noise's variance.

    Clicks are divided by the number of devices that stand for one reader.
    """

    clicks: Floats
    first_hour: int
    variance: float


def contributed(log: Log, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Return hours and articles of the contributed clicks: one random click of each reader and hour, both [k].

    In a UTC day, only a reader's first HOURS_A_DAY hours with a click contribute.
    """
    users, news, times = log.clicks
    kept = times // HOUR >= log.times_sec.min() // HOUR - LEAD_HOURS
    users, news, hours = users[kept], news[kept], times[kept] // HOUR
    order = np.lexsort((rng.random(len(users)), hours, users))
    users, news, hours = users[order], news[order], hours[order]
    chosen = _first_of(users, hours)
    users, news, hours = users[chosen], news[chosen], hours[chosen]
    new_day = np.flatnonzero(_first_of(users, hours // DAY_HOURS))
    rank = np.arange(len(users)) - np.repeat(new_day, np.diff(np.append(new_day, len(users))))
    return hours[rank < HOURS_A_DAY], news[rank < HOURS_A_DAY]


def hourly_counts(log: Log, sd: float, copies: int, rng: np.random.Generator) -> HourlyCounts:
    """Return the counts of all hours, under noise with this standard deviation.

    copies: how many devices contribute the same clicks as each reader, with the same noise in their sum.
    """
    first = int(log.times_sec.min() // HOUR) - LEAD_HOURS
    rows = int(log.times_sec.max() // HOUR) - first + 1
    hours, news = contributed(log, rng)
    clicks = np.zeros((rows, log.articles))
    np.add.at(clicks, (hours - first, news), 1.0)
    clicks += rng.normal(scale=sd / copies, size=clicks.shape) if sd else 0.0
    return HourlyCounts(clicks, first, (sd / copies) ** 2)


def private_counts(log: Log, counts: HourlyCounts) -> Floats:
    """Return the logarithm of the estimated clicks in each window of complete hours: [n, windows]."""
    hours = log.times_sec[log.owners] // HOUR - counts.first_hour
    appeared = log.first_seen_sec // HOUR - counts.first_hour  # far in the future for articles that never appear
    pairs, inverse = np.unique(hours * log.articles + log.candidates.values, return_inverse=True)
    asked_hours, news = pairs // log.articles, pairs % log.articles
    ages = age_class(asked_hours - appeared[news])
    total = np.concatenate([np.zeros((1, log.articles)), np.cumsum(counts.clicks, axis=0)])  # [hours + 1, articles]
    found = []
    for window in WINDOWS_HOURS:
        curve = usual_clicks(total, appeared, window)
        usual = curve[asked_hours, ages]
        clicks = total[asked_hours, news] - total[np.maximum(asked_hours - window, 0), news]
        lifts = _lifts(clicks, usual, counts.variance * window)
        lifts[asked_hours <= appeared[news]] = 0.0
        found.append(np.log1p(usual * np.exp(lifts))[inverse])
    return np.stack(found, axis=1) / LOG_SCALE


def age_class(ages_hours: Integers) -> Integers:
    """Return the index in AGES_HOURS; an article that has not appeared yet has that of age 0."""
    return np.maximum(np.searchsorted(AGES_HOURS, ages_hours, side="right") - 1, 0)


def usual_clicks(total: Floats, appeared: Integers, window: int) -> Floats:
    """Return the mean count of a window by the age of an article, from all earlier hours: [hours, ages].

    total [hours + 1, articles] are counts before each hour, appeared [articles] the hour of the first appearance. Row h
    uses windows that end by the start of hour h.
    """
    hours = len(total) - 1
    sums, numbers = np.zeros((hours, len(AGES_HOURS))), np.zeros((hours, len(AGES_HOURS)))
    for hour in range(1, hours):
        old = appeared < hour
        classes = age_class(hour - appeared[old])
        clicks = total[hour, old] - total[max(hour - window, 0), old]
        sums[hour] = np.bincount(classes, clicks, len(AGES_HOURS))
        numbers[hour] = np.bincount(classes, minlength=len(AGES_HOURS))
    means = np.cumsum(sums, axis=0) / np.maximum(np.cumsum(numbers, axis=0), 1.0)
    return np.maximum(means, LEAST_USUAL)


def _lifts(clicks: Floats, usual: Floats, variance: float) -> Floats:
    """Return posterior means of log(clicks / usual), computed in chunks to limit memory."""
    parts = []
    for start in range(0, len(clicks), CHUNK):
        some = slice(start, start + CHUNK)
        nothing = np.zeros(len(clicks[some]))
        counted = NoisyCounts(clicks[some], usual[some], np.full(len(nothing), variance), nothing)
        parts.append(posterior_lifts(counted, Exposure(usual[some], nothing), nothing, SPREAD, UsualRates(1.0, SPREAD)))
    return np.concatenate([*parts, np.zeros(0)])


def _first_of(*columns: Integers) -> NDArray[np.bool_]:
    """Return whether a row differs from the one before it in any column."""
    first = np.ones(len(columns[0]), dtype=np.bool_)
    first[1:] = np.any([each[1:] != each[:-1] for each in columns], axis=0)
    return first
