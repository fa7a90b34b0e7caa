"""`ownfeed evaluate finding`: compares FINDING with vanilla federated learning and other baselines."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from experiments.datasets.mind import FOLDER
from experiments.papers.finding.methods import BASES, CHOSEN, GRIDS, methods_of
from experiments.papers.finding.training import (
    METRICS,
    VALIDATION_SEED,
    FindingSizes,
    FindingTrainer,
    Job,
    Result,
    best,
)
from experiments.records import Cell, Table, required
from experiments.study import Study

AGAINST = "vanilla"
COLUMNS = (
    "method",
    "AUC",
    "sd",
    *METRICS[1:],
    "known AUC",
    "cold AUC",
    "AUC - vanilla",
    "known - vanilla",
    "cold - vanilla",
    "models",
    "s",
)


@dataclass(frozen=True)
class FindingStudy(Study[Job, Result]):
    """Trainings on MIND's split. methods: names of methods by base ranker."""

    part: ClassVar[str]
    """Which impressions are used."""

    data: Path
    methods: Mapping[str, Sequence[str]]
    sizes: FindingSizes = field(default_factory=FindingSizes)

    @cached_property
    def trainer(self) -> FindingTrainer:
        """The data and models, made at first use."""
        return FindingTrainer(self.data, self.sizes)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {**asdict(self.sizes), "part": self.part}

    def prepare(self) -> None:
        required(self.data / FOLDER)

    def run(self, job: Job) -> Result:
        return self.trainer.run(job, self.part)

    def line(self, job: Job, run: Result) -> str:
        """AUC, time and the method's note."""
        values = "".join(f", {name} {value:g}" for name, value in job.values)
        named = f"{job.base}, {job.method}, seed {job.seed}{values}"
        return f"{named}: AUC {run.auc():.4f}, {run.seconds:.0f} s" + (f"; {run.note}" if run.note else "")

    def tables(self, runs: Mapping[Job, Result]) -> list[Table]:
        return [self.table(base, [run for job, run in runs.items() if job.base == base]) for base in self.methods]

    @abstractmethod
    def table(self, base: str, results: Sequence[Result]) -> Table:
        """The table of one base ranker's results."""

    def rows(self, job: Job, run: Result) -> list[dict[str, Any]]:
        figures = {"metrics": run.metrics.tolist(), "known": run.known.tolist()}
        rest = {"seconds": run.seconds, "models": run.models, "note": run.note, "moves": run.moves}
        return [{**asdict(job), **figures, **rest}]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[Job, Result]:
        found = [
            Result(
                Job(row["base"], row["method"], row["seed"], tuple((name, value) for name, value in row["values"])),
                np.array(row["metrics"]),
                np.array(row["known"], dtype=bool),
                row["seconds"],
                row["models"],
                row["note"],
                tuple(row.get("moves", ())),
            )
            for row in rows
        ]
        return {result.job: result for result in found}


@dataclass(frozen=True)
class FindingComparison(FindingStudy):
    """Methods with their chosen hyper-parameters, compared with vanilla learning, on the test impressions."""

    part: ClassVar[str] = "test"
    trainings: int = 3

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.trainings))

    @property
    def jobs(self) -> Sequence[Job]:
        """Jobs by base and seed; vanilla learning is always included."""
        return [
            Job.of(base, name, seed, CHOSEN[base].get(name, {}))
            for base, names in self.methods.items()
            for seed in self.seeds
            for name in (names if AGAINST in names else [AGAINST, *names])
        ]

    def table(self, base: str, results: Sequence[Result]) -> Table:
        """Means over seeds; differences are paired by seed and impression, with their error over impressions."""
        named: dict[str, list[Result]] = {}
        for result in results:
            named.setdefault(result.job.method, []).append(result)
        against = named[AGAINST]
        known = against[0].known
        rows = [_row(name, mine, against) for name, mine in named.items()]
        notes = (
            f"{BASES[base].study_model}; {self.sizes.rounds} rounds of {self.sizes.cohort} readers; {len(against)} "
            f"seeds. {len(known)} test impressions: {int(known.sum())} of readers who trained (known), "
            f"{int((~known).sum())} of others (cold). Differences are paired by seed and impression, +- one standard "
            "error.",
            *(f"{run.job.method}, seed {run.job.seed}: {run.note}." for run in results if run.note),
        )
        return Table(f"FINDING and its baselines, MIND subset, {base}", COLUMNS, rows, notes)


@dataclass(frozen=True)
class FindingTuning(FindingStudy):
    """Tries the grids of hyper-parameters on the validation impressions."""

    part: ClassVar[str] = "validation"

    @property
    def seeds(self) -> tuple[int, ...]:
        """One seed, different from those of the comparison."""
        return (VALIDATION_SEED,)

    @property
    def jobs(self) -> Sequence[Job]:
        """Return one job for every value of each method's grid."""
        return [
            Job.of(base, name, VALIDATION_SEED, values)
            for base, names in self.methods.items()
            for name in names
            for values in GRIDS[base].get(name, ({},))
        ]

    def table(self, base: str, results: Sequence[Result]) -> Table:
        """One row for each value; marks the best value of each method."""
        chosen = {id(result) for result in best(results).values()}
        rows: list[tuple[Cell, ...]] = [
            (
                result.job.method,
                ", ".join(f"{name} {value:g}" for name, value in result.job.values) or None,
                *(f"{result.auc(part):.4f}" for part in (None, result.known, ~result.known)),
                result.models,
                "chosen" if id(result) in chosen else None,
            )
            for result in results
        ]
        notes = (f"Validation impressions, seed {VALIDATION_SEED}; chosen: the greatest AUC, the first of equals.",)
        columns = ("method", "values", "AUC", "known AUC", "cold AUC", "models", "")
        return Table(f"Hyper-parameters, {base}", columns, rows, notes)


def methods_by_base(bases: Sequence[str], methods: Sequence[str]) -> dict[str, list[str]]:
    """Return the methods of each base; no names select all. Raises ValueError for an unknown name."""
    unknown = [name for name in bases if name not in BASES]
    if unknown:
        raise ValueError(f"model: {unknown[0]!r} is not one of {', '.join(BASES)}")
    return {base: methods_of(base, methods) for base in bases}


def _row(name: str, runs: Sequence[Result], against: Sequence[Result]) -> tuple[Cell, ...]:
    metrics = np.mean([run.metrics for run in runs], axis=0)  # [impressions, 4]
    known = runs[0].known
    aucs = [run.auc() for run in runs]
    gains = metrics[:, 0] - np.mean([run.metrics for run in against], axis=0)[:, 0]
    parts = (np.ones_like(known), known, ~known)
    compared = [None] * 3 if name == AGAINST else [_difference(gains[part]) for part in parts]
    return (
        name,
        *(f"{metrics[:, 0].mean():.4f}", f"{np.std(aucs, ddof=1):.4f}" if len(aucs) > 1 else None),
        *(f"{each:.4f}" for each in metrics[:, 1:].mean(axis=0)),
        *(f"{metrics[part, 0].mean():.4f}" for part in parts[1:]),
        *compared,
        round(float(np.mean([run.models for run in runs]))),
        round(float(np.mean([run.seconds for run in runs]))),
    )


def _difference(gains: np.ndarray) -> str:
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else float("nan")
    return f"{gains.mean():+.4f} +- {error:.4f}"
