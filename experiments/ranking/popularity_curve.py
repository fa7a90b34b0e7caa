"""`ownfeed evaluate popularity`: how much private counts improve ranking, by noise and by number of devices.

MIND's dev readers play the devices: they are drawn with replacement, and each contributes its reader's data and its
share of noise. Ranking is measured on all dev readers, each without its own contribution.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.federation.protections.registry import resolve
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.counting import Counting
from backend.federation.systems import COMPOSED
from backend.popularity.estimate import Usage, devices_needed, reliability
from experiments.attacks.attacks import CountedCohort, forged_table
from experiments.datasets.mind import FOLDER, Mind, load_mind
from experiments.datasets.titles import title_vectors, unit_rows
from experiments.ranking.evaluation import metrics
from experiments.ranking.models import flat_scores, live_popularity, softmax_cosine
from experiments.ranking.popularity import (
    SHARPNESS,
    CountContributions,
    counted_by,
    popularity_table,
    replace_sigma,
    weighed,
)
from experiments.records import Cell, Table
from experiments.study import Study
from protocol.popularity import CLICKED, DISPLAYED
from protocol.ring import WeightedSum

PRIVATE_COUNTS = COMPOSED["private_counts/secure/huber"]

DEVICES = (60, 300, 1_000, 3_000, 5_000, 20_000)
SPREAD = 0.9
COLUMNS = (
    "devices",
    "AUC, no noise",
    "AUC, one sum",
    "sd",
    "AUC, groups",
    "sd",
    "noise sd",
    "in groups",
    "expected reliability",
    "draws",
)


@dataclass(frozen=True)
class CountedReaders:
    """The exact displays and clicks [readers, n] of all dev readers, and their count without noise."""

    displayed: NDArray[np.float64]
    clicked: NDArray[np.float64]
    given: CountContributions


def curve_table(mind: Mind, cosine: NDArray[np.float64], *, draws: int, sizes: Sequence[int] = DEVICES) -> Table:
    """Return the table of ranking by number of devices.

    cosine: flat scores of the dev candidates without popularity.
    """
    protection = secure_sum_of(PRIVATE_COUNTS.protection)
    exact = counted_by(mind, replace_sigma(protection, 0), seed=0)
    displayed, clicked = (np.stack([own[name] for own in exact.own]) for name in (DISPLAYED, CLICKED))
    readers = CountedReaders(displayed, clicked, exact)
    usage, noise = usage_of(readers), resolve(protection).noise_variance(1)
    rows: list[tuple[Cell, ...]] = []
    for devices in sizes:
        clean, noisy = (_aucs(mind, cosine, of(readers, devices, each, draws)) for each in (0.0, noise))
        joined: tuple[Cell, ...] = (None, None, None)
        if any(len(groups) > 1 for groups in dealt(devices)):
            drawn = list(in_groups(readers, devices, noise, draws))
            aucs = _aucs(mind, cosine, (contributions for contributions, _ in drawn))
            joined = (*_mean_and_deviation(aucs), f"{np.mean([deviation for _, deviation in drawn]):.2f}")
        expected = reliability(devices, usage, noise)
        rows.append(
            (
                f"{devices:,}",
                f"{clean.mean():.4f}",
                *_mean_and_deviation(noisy),
                *joined[:2],
                f"{math.sqrt(devices * noise):.2f}",
                joined[2],
                f"{expected:.2f}",
                draws,
            )
        )
    nothing = metrics(mind.dev, cosine).auc
    ceiling = metrics(mind.dev, cosine + 0.1 * live_popularity(mind.dev, len(mind.news), rate=True)).auc
    notes = (
        f"Without counts: AUC {nothing:.4f}; by the exact click rate of all {len(mind.dev):,} readers: {ceiling:.4f}. "
        f"Each device adds {math.sqrt(noise):.3g} clicks of noise; beyond {len(mind.dev):,} devices, readers repeat. "
        "Expected reliability: what the server expects of a count before it opens one; from .5 on, here about "
        f"{devices_needed(usage, noise):,} devices, it opens one by schedule.",
    )
    return Table("Private counts by number of devices, MIND subset dev", COLUMNS, rows, notes)


def _aucs(mind: Mind, cosine: NDArray[np.float64], contributions: Iterable[CountContributions]) -> NDArray[np.float64]:
    return np.array([metrics(mind.dev, cosine + weighed(mind.dev, one)).auc for one in contributions])


def _mean_and_deviation(found: NDArray[np.float64]) -> tuple[str, str | None]:
    return f"{found.mean():.4f}", f"{found.std(ddof=1):.4f}" if len(found) > 1 else None


POPULARITY_TABLES = ("noise", "devices", "forged")
FORGED_DRAWS = 10
"""Draws of forged counts per draw of the others: they are quick, and attacks on ten stories vary."""


@dataclass(frozen=True)
class PopularityStudy(Study[str, Table]):
    """Private counts by noise, by number of devices, and under attack; each run returns a table."""

    data: Path
    draws: int = 3

    @property
    def jobs(self) -> Sequence[str]:
        return POPULARITY_TABLES

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.draws))

    def prepare(self) -> None:
        """Check the data, then release it, because other processes read their own."""
        load_mind(self.data / FOLDER)

    @cached_property
    def shown(self) -> tuple[Mind, NDArray[np.float64]]:
        """Return the data, and flat cosine scores of the dev candidates. Raises DataMissing and MalformedRow."""
        mind = load_mind(self.data / FOLDER)
        vectors = unit_rows(title_vectors(mind.news.titles))
        return mind, flat_scores(mind.dev, softmax_cosine(vectors, SHARPNESS))

    def run(self, job: str) -> Table:
        if job == "forged":
            return forged_table(draws=FORGED_DRAWS * self.draws)
        table = {"noise": popularity_table, "devices": curve_table}[job]
        return table(*self.shown, draws=self.draws)

    def line(self, job: str, run: Table) -> str:
        return f"by {job}: {len(run.rows)} rows"

    def tables(self, runs: Mapping[str, Table]) -> list[Table]:
        return list(runs.values())


def usage_of(readers: CountedReaders) -> Usage:
    """Return the exact usage of the dev readers."""
    displays = readers.displayed.sum(axis=0)
    clicks = float(readers.clicked.sum())
    alike = float(displays.sum() ** 2 / np.square(displays).sum())
    return Usage(float(readers.displayed.sum(axis=1).mean()), alike, clicks / float(displays.sum()), SPREAD)


def of(readers: CountedReaders, devices: int, noise: float, draws: int) -> Iterator[CountContributions]:
    """Simulate the counts of this many devices, drawn from the readers.

    noise: the variance of one device's share, in clicks^2. The sum of this many discrete Gaussian shares is
    approximated by one continuous Gaussian of the same variance.
    """
    opened, strategy = readers.given.opened, PRIVATE_COUNTS.strategy
    assert isinstance(strategy, Counting)
    names, per_display = list(opened.clicks), strategy.displayed_unit
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        times = rng.multinomial(devices, np.full(len(readers.clicked), 1 / len(readers.clicked)))
        variances = devices * noise / per_display**2, devices * noise
        sums = [
            times @ each + rng.normal(0.0, math.sqrt(variance), len(names))
            for each, variance in zip((readers.displayed, readers.clicked), variances, strict=True)
        ]
        own = [
            {DISPLAYED: one[DISPLAYED] * many, CLICKED: one[CLICKED] * many}
            for one, many in zip(readers.given.own, times, strict=True)
        ]
        by_name = [dict(zip(names, each.tolist(), strict=True)) for each in sums]
        yield CountContributions(
            own,
            replace(
                opened,
                devices=devices,
                displays=by_name[0],
                clicks=by_name[1],
                displays_variance=variances[0],
                clicks_variance=variances[1],
            ),
        )


def dealt(devices: int) -> list[list[int]]:
    """Return the sizes of the groups of each count that this many devices make.

    A count with a single group is one sum.
    """
    most = secure_sum_of(PRIVATE_COUNTS.protection).cohort_limit
    counts = [len(range(at, devices, -(-devices // most))) for at in range(-(-devices // most))]
    groups = [CountedCohort(each, join=PRIVATE_COUNTS.join).groups for each in counts]
    return [[len(range(at, each, number)) for at in range(number)] for each, number in zip(counts, groups, strict=True)]


def in_groups(
    readers: CountedReaders, devices: int, noise: float, draws: int
) -> Iterator[tuple[CountContributions, float]]:
    """See `of`, with each count in groups joined like live ones.

    Also returns the deviation of the published clicks from the contributed ones.
    """
    join, strategy, opened = PRIVATE_COUNTS.join, PRIVATE_COUNTS.strategy, readers.given.opened
    assert join is not None
    assert isinstance(strategy, Counting)
    names, unit = list(opened.clicks), strategy.displayed_unit
    each_gives = np.hstack([readers.displayed * unit, readers.clicked])
    for seed in range(draws):
        rng = np.random.default_rng((seed, devices))
        times, counts = np.zeros(len(readers.clicked), dtype=np.int64), np.zeros(2 * len(names))
        for sizes in dealt(devices):
            many = np.stack([rng.multinomial(size, np.full(len(times), 1 / len(times))) for size in sizes])
            shares = np.sqrt(noise * np.array(sizes))[:, None]
            sums = many @ each_gives + shares * rng.normal(size=(len(sizes), each_gives.shape[1]))
            parts = [WeightedSum({"counts": one}, size) for one, size in zip(sums, sizes, strict=True)]
            total = join.join(parts, None, noise)
            counts += total.sums()["counts"]
            times += many.sum(axis=0)
        displays, clicks = counts[: len(names)] / unit, counts[len(names) :]
        own = [
            {DISPLAYED: one[DISPLAYED] * count, CLICKED: one[CLICKED] * count}
            for one, count in zip(readers.given.own, times, strict=True)
        ]
        variance = devices * noise * total.noise_growth
        counted = replace(
            opened,
            devices=devices,
            displays=dict(zip(names, displays.tolist(), strict=True)),
            clicks=dict(zip(names, clicks.tolist(), strict=True)),
            displays_variance=variance / unit**2,
            clicks_variance=variance,
        )
        yield CountContributions(own, counted), float(np.std(clicks - times @ readers.clicked))
