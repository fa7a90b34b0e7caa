"""`ownfeed evaluate movielens`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.datasets.movielens import FOLDER, load_movielens
from experiments.movielens.evaluation import Figures
from experiments.movielens.report import tables
from experiments.movielens.systems import Choices
from experiments.movielens.training import (
    ALL,
    HELD_OUT,
    TRAININGS,
    MovieLensBench,
    MovieLensRun,
    MovieLensSettings,
    run_training,
)
from experiments.study import Study
from experiments.table import Table

MovieLensJob = tuple[str, int]
"""Training and build."""
Rows = list[MovieLensRun]
"""What one training got: a row, or two where held-out films may be ranked by themselves or among all."""


@dataclass(frozen=True)
class MovieLensStudy(Study[MovieLensJob, Rows]):
    """Trainings by their names, in so many builds each, or fewer where TRAININGS says so."""

    data: Path
    names: Sequence[str] = tuple(TRAININGS)
    builds: int = 3
    sizes: MovieLensSettings = field(default_factory=MovieLensSettings)
    choices: Choices = field(default_factory=Choices)

    @cached_property
    def bench(self) -> MovieLensBench:
        """The data, read when first asked for."""
        return MovieLensBench(self.data)

    @property
    def jobs(self) -> Sequence[MovieLensJob]:
        """Build by build."""
        return [(name, build) for build in self.seeds for name in self.names if build < TRAININGS[name].builds]

    @property
    def seeds(self) -> tuple[int, ...]:
        """A build's number is the seed of its split, where it has one of its own, and of its training."""
        return tuple(range(self.builds))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Sizes and choices."""
        return asdict(self.sizes) | asdict(self.choices)

    def prepare(self) -> None:
        """Read the data, and let go of it again: other processes read their own."""
        load_movielens(self.data / FOLDER)

    def run(self, job: MovieLensJob) -> Rows:
        """Train one."""
        return run_training(self.bench, *job, self.sizes, self.choices)

    def line(self, job: MovieLensJob, run: Rows) -> str:
        """Precision and AUC of each row."""
        return "; ".join(
            f"{each.row}, build {each.build}: P@10 {each.figures.precision:.4f}, AUC {each.figures.auc:.4f}, "
            f"{each.seconds:.0f} core s"
            for each in run
        )

    def tables(self, runs: Mapping[MovieLensJob, Rows]) -> list[Table]:
        """The paper's, and those of noise and scale."""
        return tables([row for run in runs.values() for row in run], self.sizes, self.choices)

    def rows(self, job: MovieLensJob, run: Rows) -> list[dict[str, Any]]:
        """One or two."""
        return [asdict(each) for each in run]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[MovieLensJob, Rows]:
        """Rows of one training and build belong together."""
        found: dict[MovieLensJob, Rows] = {}
        for row in rows:
            run = MovieLensRun(**{**row, "figures": Figures(**row["figures"])})
            name = run.row.removesuffix(f", {HELD_OUT}").removesuffix(f", {ALL}")
            found.setdefault((name, run.build), []).append(run)
        return found


def wanted(systems: Sequence[str]) -> list[str]:
    """Rows by their names, or by parts of them. Raises ValueError, with the names there are, for any other."""
    names: set[str] = set()
    for part in systems or TRAININGS:
        found = [name for name in TRAININGS if name.lower() == part.lower()]
        found = found or [name for name in TRAININGS if part.lower() in name.lower()]
        if not found:
            raise ValueError(f"systems: {part!r} is in none of {', '.join(TRAININGS)}")
        names.update(found)
    return [name for name in TRAININGS if name in names]
