"""`ownfeed evaluate fl-mv-dssm`: compares FL-MV-DSSM with its baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.datasets.movielens import FOLDER, load_movielens
from experiments.papers.fl_mv_dssm.evaluation import Figures
from experiments.papers.fl_mv_dssm.report import tables
from experiments.papers.fl_mv_dssm.rounds import Choices
from experiments.papers.fl_mv_dssm.training import (
    ALL,
    HELD_OUT,
    TRAININGS,
    MovieLensBench,
    MovieLensRun,
    MovieLensSettings,
    run_training,
)
from experiments.records import Table
from experiments.study import Study

MovieLensJob = tuple[str, int]
"""Training and build."""
Rows = list[MovieLensRun]
"""The result of one training: one row, or two if held-out films are ranked alone and among all."""


@dataclass(frozen=True)
class MovieLensStudy(Study[MovieLensJob, Rows]):
    """Trainings by name, each in this many builds, or fewer where TRAININGS says so."""

    data: Path
    names: Sequence[str] = tuple(TRAININGS)
    builds: int = 3
    sizes: MovieLensSettings = field(default_factory=MovieLensSettings)
    choices: Choices = field(default_factory=Choices)

    @cached_property
    def bench(self) -> MovieLensBench:
        """The data, read at first use."""
        return MovieLensBench(self.data)

    @property
    def jobs(self) -> Sequence[MovieLensJob]:
        """Return the jobs, build by build."""
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
        """Run one training."""
        return run_training(self.bench, *job, self.sizes, self.choices)

    def line(self, job: MovieLensJob, run: Rows) -> str:
        """Return precision and AUC of each row."""
        return "; ".join(
            f"{each.row}, build {each.build}: P@10 {each.figures.precision:.4f}, AUC {each.figures.auc:.4f}, "
            f"{each.seconds:.0f} core s"
            for each in run
        )

    def tables(self, runs: Mapping[MovieLensJob, Rows]) -> list[Table]:
        """The paper's tables, and those of noise and scale."""
        return tables([row for run in runs.values() for row in run], self.sizes, self.choices)

    def rows(self, job: MovieLensJob, run: Rows) -> list[dict[str, Any]]:
        """Return one or two rows."""
        return [asdict(each) for each in run]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[MovieLensJob, Rows]:
        """Join the rows of one training and build."""
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
            raise ValueError(f"systems: {part!r} is in none of {', '.join(TRAININGS)}")
        names.update(found)
    return [name for name in TRAININGS if name in names]
