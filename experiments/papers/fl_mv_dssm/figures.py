"""`ownfeed evaluate fl-mv-dssm --figures`: figure 2, precision and recall by round.

The central systems have no rounds; Table III has their values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets.movielens import FOLDER, load_movielens
from experiments.papers.fl_mv_dssm.rounds import SYSTEMS, Choices, Towers, fit_personal_towers, predict, train
from experiments.papers.fl_mv_dssm.study import PUBLISHED
from experiments.papers.fl_mv_dssm.training import MovieLensBench, MovieLensSettings, evaluate
from experiments.records import Cell, Table
from experiments.study import Study

PARTS = 5
"""Number of measurements of a training, after the one that follows its first round."""
METRICS = ("precision", "recall")

Job = tuple[str, int]
Curve = dict[int, list[float]]
"""Precision and recall at 10 by finished rounds."""


@dataclass(frozen=True)
class MovieLensFigure(Study[Job, Curve]):
    """Trains federated systems, and measures them at intervals."""

    data: Path
    builds: int = 2
    choices: Choices = field(default_factory=Choices)
    names: Sequence[str] = tuple(SYSTEMS)

    @cached_property
    def bench(self) -> MovieLensBench:
        return MovieLensBench(self.data)

    @property
    def jobs(self) -> Sequence[Job]:
        """Every system in every build."""
        return [(name, build) for build in self.seeds for name in self.names]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.builds))

    @property
    def settings(self) -> Mapping[str, Any]:
        return asdict(self.choices)

    @property
    def measured(self) -> list[int]:
        """The rounds after which a training is measured."""
        return sorted({1, *(max(1, self.choices.rounds * part // PARTS) for part in range(1, PARTS + 1))})

    def prepare(self) -> None:
        load_movielens(self.data / FOLDER)

    def run(self, job: Job) -> Curve:
        """Train on the split of Table III, and measure as it does."""
        name, build = job
        split = self.bench.split("warm", build, MovieLensSettings(self.choices.rounds))
        features = self.bench.features(split)
        curve: Curve = {}

        def measure(done: int, towers: Towers) -> None:
            if done in self.measured:
                fitted = fit_personal_towers(towers, features, split, self.choices, build)
                found = evaluate(predict(fitted, features, self.choices.gamma), split)
                curve[done] = [getattr(found, metric) for metric in METRICS]

        train(SYSTEMS[name], features, split, self.choices, build, measure)
        return curve

    def line(self, job: Job, run: Curve) -> str:
        return f"{job[0]}, build {job[1]}: P@10 " + ", ".join(f"{done}: {each[0]:.4f}" for done, each in run.items())

    def rows(self, job: Job, run: Curve) -> list[dict[str, Any]]:
        return [{"system": job[0], "build": job[1], "curve": run}]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[Job, Curve]:
        """Return the curves of stored rows, whose rounds JSON holds as text."""
        return {(row["system"], row["build"]): {int(done): each for done, each in row["curve"].items()} for row in rows}

    def tables(self, runs: Mapping[Job, Curve]) -> list[Table]:
        notes = (
            f"Mean over {self.builds} builds of {self.choices.rounds} rounds of {self.choices.cohort} users, on a "
            "fifth of each user's items. The paper's values are Table III's; those of its figure aren't in its text.",
        )
        found = []
        for at, metric in enumerate(METRICS):
            rows: list[tuple[Cell, ...]] = []
            for name in self.names:
                curves = [runs[name, build] for build in self.seeds]
                means = np.mean([[curve[done][at] for done in self.measured] for curve in curves], axis=0)
                rows.append((name, *(f"{each:.4f}" for each in means), f"{getattr(PUBLISHED[name], metric)[0]:.4f}"))
            columns = ("system", *(f"round {done}" for done in self.measured), "paper, round 100")
            found.append(Table(f"{metric.capitalize()} at 10 by round (Figure 2)", columns, rows))
        return [replace(found[0], notes=notes), *found[1:]]
