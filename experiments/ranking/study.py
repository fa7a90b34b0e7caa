"""`ownfeed evaluate ranking`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments.datasets.mind import FOLDER, load_mind
from experiments.ranking.choices import choices
from experiments.ranking.models import STUDY_MODELS
from experiments.ranking.report import trained_rankers, untrained_scorers
from experiments.ranking.training import (
    OF_THIS_MACHINE,
    SCHEDULES,
    RankingRun,
    RankingSettings,
    TrainingSchedule,
    Workbench,
    train,
)
from experiments.ranking.untrained import untrained_table
from experiments.simulation.engines import gradient_graph, ranker_inputs
from experiments.study import Study
from experiments.table import Table
from models.metrics import RankingMetrics

RankingJob = tuple[str, TrainingSchedule, int]
"""Model, schedule, seed."""


@dataclass(frozen=True)
class RankingStudy(Study[RankingJob, RankingRun]):
    """Models by their names, each trained by every schedule `trainings` times; none trains nothing."""

    data: Path
    names: Sequence[str] = ()
    sizes: RankingSettings = field(default_factory=RankingSettings)
    trainings: int = 1
    schedules: Sequence[TrainingSchedule] = SCHEDULES

    @cached_property
    def bench(self) -> Workbench:
        """The data. Raises DataMissing and MalformedRow."""
        return Workbench(load_mind(self.data / FOLDER))

    @property
    def jobs(self) -> Sequence[RankingJob]:
        """Seed by seed."""
        return [(name, schedule, seed) for seed in self.seeds for name in self.names for schedule in self.schedules]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of the trainings; what isn't trained draws by seed 0."""
        return tuple(range(self.trainings))

    @property
    def settings(self) -> Mapping[str, int]:
        """Sizes that change a figure."""
        return {name: value for name, value in asdict(self.sizes).items() if name not in OF_THIS_MACHINE}

    def prepare(self) -> None:
        """Read the data. Raises ValueError where devices can't be simulated as was asked, too."""
        if self.sizes.engine == "ray":
            self._check_ray()
        self.bench  # noqa: B018 - what it raises, it raises now

    def _check_ray(self) -> None:
        here = [name for name in self.names if STUDY_MODELS[name].features]
        if here:
            raise ValueError(f"engine: features can't be sent to Ray, so leave it out for {', '.join(here)}")
        if find_spec("ray") is None:
            raise ValueError("engine: Ray isn't installed; pip install -c constraints.txt '.[ray]' brings it")

    def run(self, job: RankingJob) -> RankingRun:
        """Train one."""
        name, schedule, seed = job
        study_model = STUDY_MODELS[name]
        model = study_model.model(seed)
        if name not in self._graphs:
            self._graphs[name] = gradient_graph(model, ranker_inputs(study_model.dim, len(study_model.features)))
        return train(self.bench, study_model, model, self._graphs[name], schedule, seed, self.sizes)

    @cached_property
    def _graphs(self) -> dict[str, bytes]:
        """The gradient graph of each study_model, exported once."""
        return {}

    def line(self, job: RankingJob, run: RankingRun) -> str:
        """AUC and loss, before and after."""
        return (
            f"{run.study_model}, {run.schedule}, seed {run.seed}: AUC {run.start.auc:.4f} -> {run.end.auc:.4f}, "
            f"loss {run.first_loss:.3f} -> {run.last_loss:.3f}, {run.seconds:.0f} s"
        )

    def tables(self, runs: Mapping[RankingJob, RankingRun]) -> list[Table]:
        """Scorers that nothing trains, what the default ranker is made of, and trained models, if any."""
        mind, vectors = self.bench.mind, self.bench.vectors
        found = [untrained_scorers(untrained_table(mind, vectors, seed=0)), choices(mind, vectors)]
        return [*found, trained_rankers(list(runs.values()), self.sizes)] if runs else found

    def rows(self, job: RankingJob, run: RankingRun) -> list[dict[str, Any]]:
        """One."""
        return [asdict(run)]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[RankingJob, RankingRun]:
        """A run a row."""
        metrics = [{name: RankingMetrics(**row[name]) for name in ("start", "end")} for row in rows]
        found = [RankingRun(**{**row, **read}) for row, read in zip(rows, metrics, strict=True)]
        return {(run.study_model, run.schedule, run.seed): run for run in found}


def chosen_models(parts: Sequence[str]) -> list[str]:
    """Names of the models that hold one of the parts. Raises ValueError, with the names there are, for any other."""
    unknown = [part for part in parts if not any(part.lower() in name.lower() for name in STUDY_MODELS)]
    if unknown:
        raise ValueError(f"models: {unknown[0]!r} is in none of {', '.join(STUDY_MODELS)}")
    return [name for name in STUDY_MODELS if any(part.lower() in name.lower() for part in parts)]
