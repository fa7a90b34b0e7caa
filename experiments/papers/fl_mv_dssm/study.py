"""`ownfeed evaluate fl-mv-dssm`: compares FL-MV-DSSM with its baselines, and with the paper's tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from device_app.privacy.local_aggregate import exact_epsilon, renyi_epsilon
from experiments.datasets.movielens import FOLDER, load_movielens
from experiments.papers.fl_mv_dssm.rounds import Choices
from experiments.papers.fl_mv_dssm.training import (
    ALL,
    HELD_OUT,
    TRAININGS,
    Figures,
    MovieLensBench,
    MovieLensRun,
    MovieLensSettings,
    run_training,
)
from experiments.records import Cell, Table
from experiments.study import Study

METRICS = (("precision", "P@10"), ("recall", "R@10"), ("ndcg", "NDCG@10"), ("auc", "AUC"))
TITLES = (*(title for _, title in METRICS), "10P/R")
COLUMNS = ("system", *(f"{title}{whose}" for title in TITLES for whose in ("", " paper")), "builds", "core s")
DELTA = 1e-3


@dataclass(frozen=True)
class PublishedMetrics:
    """The paper's Tables II and III: (mean, standard deviation) of 3 builds, by metric.

    nDCG is below precision in every row, so it is not the usual one.
    """

    precision: tuple[float, float]
    recall: tuple[float, float]
    ndcg: tuple[float, float]
    auc: tuple[float, float]


PUBLISHED: dict[str, PublishedMetrics] = {
    "CS-Users": PublishedMetrics((0.4574, 0.0085), (0.0696, 0.0100), (0.3697, 0.0031), (0.7793, 0.0617)),
    "CS-Items": PublishedMetrics((0.1586, 0.0002), (0.1086, 0.0015), (0.1318, 0.0008), (0.5809, 0.0721)),
    "CS-Users-Items": PublishedMetrics((0.1408, 0.0033), (0.1335, 0.0315), (0.1232, 0.0024), (0.5672, 0.0043)),
    "Central DSSM View-1": PublishedMetrics((0.2804, 0.0011), (0.0870, 0.0036), (0.2389, 0.0013), (0.8479, 0.0009)),
    "Central DSSM View-2": PublishedMetrics((0.3980, 0.0025), (0.1501, 0.0009), (0.3401, 0.0035), (0.9202, 0.0011)),
    "FCF": PublishedMetrics((0.3010, 0.0032), (0.1017, 0.0019), (0.2606, 0.0008), (0.8627, 0.0003)),
    "FED-MVMF": PublishedMetrics((0.3223, 0.0017), (0.1193, 0.0041), (0.2797, 0.0038), (0.8833, 0.0017)),
    "FL-DSSM View-1": PublishedMetrics((0.2691, 0.0015), (0.0721, 0.0027), (0.2292, 0.0018), (0.8445, 0.0523)),
    "FL-DSSM View-2": PublishedMetrics((0.2656, 0.0021), (0.0676, 0.0137), (0.2186, 0.0023), (0.8398, 0.0314)),
    "FL-MV-DSSM": PublishedMetrics((0.2845, 0.0034), (0.0805, 0.0113), (0.2369, 0.0104), (0.8490, 0.0033)),
    "SEMI-FL-MV-DSSM": PublishedMetrics((0.3512, 0.0070), (0.1217, 0.0214), (0.3136, 0.0038), (0.8986, 0.0051)),
}


def tables(runs: Sequence[MovieLensRun], settings: MovieLensSettings, choices: Choices) -> list[Table]:
    """Warm, cold and noisy rows: mean +- standard deviation over builds if there are several."""
    groups: dict[str, list[MovieLensRun]] = {}
    for name, training in TRAININGS.items():
        for row in (name, f"{name}, {HELD_OUT}", f"{name}, {ALL}"):
            if found := [run for run in runs if run.row == row]:
                groups.setdefault(training.table, []).extend(found)
    held_out = (
        "a fifth of each user's training items, no test item" if settings.validate else "a fifth of each user's items"
    )
    chosen = (
        f"{settings.rounds} rounds of {choices.cohort} users without noise; C = {choices.clip:g}, gamma = "
        f"{choices.gamma:g}, N = {choices.negatives}."
    )
    ranked = "Ranked: all films except the user's own training items."
    notes = {
        "u1": (f"Held out: the dataset's u1.test, the first fifth of u.data. {ranked}", chosen),
        "warm": (f"Held out: {held_out}. {ranked}",),
        "cold": (
            "FL-MV-DSSM with a tenth of the users, films or both left out of training. The paper does not say among "
            "which films held-out films are ranked, so both ways are shown.",
        ),
        "noise": (
            f"Sigma 1, C = {choices.clip:g}, noise on each view: epsilon {exact_epsilon(1, 100, DELTA):.1f} a view "
            f"over 100 rounds at delta 1e-3 ({renyi_epsilon(1, 100, DELTA):.1f} by Renyi accounting). Noisy "
            "prediction: N(0, 2) on every probability, each about 1 / 1,682.",
        ),
        "scale": (
            "On u1, with View-2 as the left singular vectors U alone, rows about .18 long; elsewhere it is U S, of "
            "length 1.",
        ),
    }
    titles = {
        "u1": "Recommendation, MovieLens-100K, the dataset's own split (Table III)",
        "warm": "Recommendation, MovieLens-100K, a fifth of each user's items (Table III)",
        "cold": "Cold start, MovieLens-100K (Table II)",
        "noise": "With the paper's noise",
        "scale": "View-2 without scaling",
    }
    return [Table(titles[kind], COLUMNS, _rows(groups[kind]), notes[kind]) for kind in titles if kind in groups]


def _rows(runs: Sequence[MovieLensRun]) -> list[tuple[Cell, ...]]:
    named = dict.fromkeys(run.row for run in runs)
    return [_row(name, [run for run in runs if run.row == name]) for name in named]


def _row(name: str, runs: Sequence[MovieLensRun]) -> tuple[Cell, ...]:
    known = PUBLISHED.get(name.split(",")[0])
    cells: list[Cell] = []
    for metric, _ in METRICS:
        ours = np.array([getattr(run.figures, metric) for run in runs])
        cells.append(_text(float(ours.mean()), float(ours.std(ddof=1)) if len(ours) > 1 else None))
        cells.append(_text(*getattr(known, metric)) if known else None)
    cells.append(
        round(float(np.mean([_mean_test_items(run.figures.precision, run.figures.recall) for run in runs])), 1)
    )
    cells.append(round(_mean_test_items(known.precision[0], known.recall[0]), 1) if known else None)
    return (name, *cells, len(runs), round(float(np.mean([run.seconds for run in runs]))))


def _mean_test_items(precision: float, recall: float) -> float:
    """Return 10 P / R: the average number of test items per user, over the users with test items."""
    return 10 * precision / recall if recall else 0.0


def _text(mean: float, deviation: float | None) -> str:
    return f"{mean:.4f}" if deviation is None else f"{mean:.4f}+-{deviation:.4f}"


MovieLensJob = tuple[str, int]
"""Training and build."""
Rows = list[MovieLensRun]
"""The rows of one training: one, or two if held-out films are ranked alone and among all."""


@dataclass(frozen=True)
class MovieLensStudy(Study[MovieLensJob, Rows]):
    """Trainings by name, each in this many builds, or fewer if TRAININGS says so."""

    data: Path
    names: Sequence[str] = tuple(TRAININGS)
    builds: int = 3
    sizes: MovieLensSettings = field(default_factory=MovieLensSettings)
    choices: Choices = field(default_factory=Choices)

    @cached_property
    def bench(self) -> MovieLensBench:
        return MovieLensBench(self.data)

    @property
    def jobs(self) -> Sequence[MovieLensJob]:
        return [(name, build) for build in self.seeds for name in self.names if build < TRAININGS[name].builds]

    @property
    def seeds(self) -> tuple[int, ...]:
        """A build's number is the seed of its training, and of its split if that is drawn."""
        return tuple(range(self.builds))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the sizes and choices."""
        return asdict(self.sizes) | asdict(self.choices)

    def prepare(self) -> None:
        """Check the data, then release it, because other processes read their own."""
        load_movielens(self.data / FOLDER)

    def run(self, job: MovieLensJob) -> Rows:
        return run_training(self.bench, *job, self.sizes, self.choices)

    def line(self, job: MovieLensJob, run: Rows) -> str:
        return "; ".join(
            f"{each.row}, build {each.build}: P@10 {each.figures.precision:.4f}, AUC {each.figures.auc:.4f}, "
            f"{each.seconds:.0f} core s"
            for each in run
        )

    def tables(self, runs: Mapping[MovieLensJob, Rows]) -> list[Table]:
        return tables([row for run in runs.values() for row in run], self.sizes, self.choices)

    def rows(self, job: MovieLensJob, run: Rows) -> list[dict[str, Any]]:
        return [asdict(each) for each in run]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[MovieLensJob, Rows]:
        found: dict[MovieLensJob, Rows] = {}
        for row in rows:
            run = MovieLensRun(**{**row, "figures": Figures(**row["figures"])})
            name = run.row.removesuffix(f", {HELD_OUT}").removesuffix(f", {ALL}")
            found.setdefault((name, run.build), []).append(run)
        return found


def wanted(systems: Sequence[str]) -> list[str]:
    """Return rows by their names, or by parts of names.

    Raises ValueError that lists the names for any other.
    """
    names: set[str] = set()
    for part in systems or TRAININGS:
        found = [name for name in TRAININGS if name.lower() == part.lower()]
        found = found or [name for name in TRAININGS if part.lower() in name.lower()]
        if not found:
            raise ValueError(f"systems: {part!r} is not one of {', '.join(TRAININGS)}")
        names.update(found)
    return [name for name in TRAININGS if name in names]
