"""`ownfeed evaluate popularity`: what private counts are worth, by noise and by how many devices are counted.

MIND's dev readers stand for the devices: so many are drawn among them with replacement, each gives what its reader
gives, and each adds its share. Ranking is measured on all dev readers, without what each has contributed itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.federation.protections import resolve
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.counting import Counting
from backend.federation.systems.private_counts import PRIVATE_COUNTS
from backend.popularity.reliability import Usage, devices_needed, reliability
from device_app.wire.popularity import CLICKED, DISPLAYED
from experiments.datasets.mind import FOLDER, Mind, load_mind
from experiments.datasets.titles import title_vectors, unit_rows
from experiments.ranking.evaluation import metrics
from experiments.ranking.popularity import (
    SHARPNESS,
    CountContributions,
    counted_by,
    popularity_table,
    replace_sigma,
    weighed,
)
from experiments.ranking.untrained import flat_scores, live_popularity, softmax_cosine
from experiments.study import Study
from experiments.table import Cell, Table

DEVICES = (60, 300, 1_000, 3_000, 5_000, 20_000)
SPREAD = 0.9
COLUMNS = ("devices", "AUC, no noise", "AUC, standard shares", "sd", "noise sd", "expected reliability", "draws")


@dataclass(frozen=True)
class CountedReaders:
    """What all dev readers give, exactly: displays and clicks [readers, n], and the noiseless count they came with."""

    displayed: NDArray[np.float64]
    clicked: NDArray[np.float64]
    given: CountContributions


def curve_table(mind: Mind, cosine: NDArray[np.float64], *, draws: int, sizes: Sequence[int] = DEVICES) -> Table:
    """cosine: flat scores of the dev candidates without popularity."""
    protection = secure_sum_of(PRIVATE_COUNTS.protection)
    exact = counted_by(mind, replace_sigma(protection, 0), seed=0)
    displayed, clicked = (np.stack([own[name] for own in exact.own]) for name in (DISPLAYED, CLICKED))
    readers = CountedReaders(displayed, clicked, exact)
    usage, noise = usage_of(readers), resolve(protection).noise_variance(1)
    rows: list[tuple[Cell, ...]] = []
    for devices in sizes:
        clean, noisy = (
            np.array(
                [metrics(mind.dev, cosine + weighed(mind.dev, one)).auc for one in of(readers, devices, each, draws)]
            )
            for each in (0.0, noise)
        )
        expected = reliability(devices, usage, noise)
        rows.append(
            (
                f"{devices:,}",
                f"{clean.mean():.4f}",
                f"{noisy.mean():.4f}",
                f"{noisy.std(ddof=1):.4f}" if draws > 1 else None,
                f"{math.sqrt(devices * noise):.2f}",
                f"{expected:.2f}",
                draws,
            )
        )
    nothing = metrics(mind.dev, cosine).auc
    ceiling = metrics(mind.dev, cosine + 0.1 * live_popularity(mind.dev, len(mind.news), rate=True)).auc
    notes = (
        f"Without counts: AUC {nothing:.4f}; plain log click rate of all {len(mind.dev):,} readers, no privacy: "
        f"{ceiling:.4f}. Standard error of an AUC .011.",
        f"Standard shares: {math.sqrt(noise):.3g} clicks of noise from each device of `private_counts`. Noise "
        "sd: of the sum, in clicks.",
        "Devices beyond the number of readers repeat readers, so no count tells more than all readers do.",
        f"Expected reliability: what the server expects of such a count (`backend/popularity/reliability.py`); it "
        f"opens one "
        f"by schedule from .5 on, here from about {devices_needed(usage, noise):,} devices.",
    )
    return Table("Private counts by number of devices, MIND subset dev", COLUMNS, rows, notes)


POPULARITY_TABLES = ("noise", "devices")


@dataclass(frozen=True)
class PopularityStudy(Study[str, Table]):
    """Private counts by the noise in their sum, and by the devices counted: a run is a table."""

    data: Path
    draws: int = 3

    @property
    def jobs(self) -> Sequence[str]:
        """The two tables."""
        return POPULARITY_TABLES

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of the noise."""
        return tuple(range(self.draws))

    def prepare(self) -> None:
        """Read the data, and let go of it again: other processes read their own."""
        load_mind(self.data / FOLDER)

    @cached_property
    def shown(self) -> tuple[Mind, NDArray[np.float64]]:
        """The data and flat cosine scores of the dev candidates. Raises DataMissing and MalformedRow."""
        mind = load_mind(self.data / FOLDER)
        vectors = unit_rows(title_vectors(mind.news.titles))
        return mind, flat_scores(mind.dev, softmax_cosine(vectors, SHARPNESS))

    def run(self, job: str) -> Table:
        """Count and rank."""
        table = {"noise": popularity_table, "devices": curve_table}[job]
        return table(*self.shown, draws=self.draws)

    def line(self, job: str, run: Table) -> str:
        """What is done."""
        return f"by {job}: {len(run.rows)} rows"

    def tables(self, runs: Mapping[str, Table]) -> list[Table]:
        """Both."""
        return list(runs.values())


def usage_of(readers: CountedReaders) -> Usage:
    """How the dev readers read, known exactly."""
    displays = readers.displayed.sum(axis=0)
    clicks = float(readers.clicked.sum())
    alike = float(displays.sum() ** 2 / np.square(displays).sum())
    return Usage(float(readers.displayed.sum(axis=1).mean()), alike, clicks / float(displays.sum()), SPREAD)


def of(readers: CountedReaders, devices: int, noise: float, draws: int) -> Iterator[CountContributions]:
    """Counts by so many devices drawn among the readers; noise: the variance of one device's share, in clicks^2.

    The sum of so many discrete Gaussian shares is drawn as one Gaussian, which it is but for its steps.
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
        told = [dict(zip(names, each.tolist(), strict=True)) for each in sums]
        yield CountContributions(
            own,
            replace(
                opened,
                devices=devices,
                displays=told[0],
                clicks=told[1],
                displays_variance=variances[0],
                clicks_variance=variances[1],
            ),
        )
