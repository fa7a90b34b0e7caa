"""`ownfeed evaluate ranking`: the ranking study as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets.mind import FOLDER, load_mind
from experiments.ranking.choices import choices
from experiments.ranking.models import STUDY_MODELS, untrained_table
from experiments.ranking.training import (
    CLIP,
    DELTA,
    EPSILON,
    OF_THIS_MACHINE,
    SCHEDULES,
    RankingRun,
    RankingSettings,
    TrainingSchedule,
    Workbench,
    train,
)
from experiments.records import Cell, Table
from experiments.simulation.clients import gradient_graph, ranker_inputs
from experiments.study import Study
from models.metrics import RankingMetrics

UNTRAINED_COLUMNS = ("scorer", "AUC", "nDCG@10")
TRAINED_COLUMNS = ("model", *SCHEDULES, "step 0", "nDCG@10 federated", "trainings", "s")


def untrained_scorers(found: Mapping[str, RankingMetrics]) -> Table:
    rows = [(name, _text(each.auc), _text(each.ndcg10)) for name, each in found.items()]
    notes = ("Live popularity leaves out the reader's own clicks but knows later ones, so it is optimistic.",)
    return Table("Ranking, MIND subset dev", UNTRAINED_COLUMNS, rows, notes)


def trained_rankers(runs: Sequence[RankingRun], settings: RankingSettings) -> Table:
    """One row for each model; an AUC is the mean over seeds, with its standard deviation if there are several."""
    models: dict[str, list[RankingRun]] = {}
    for run in runs:
        models.setdefault(run.study_model, []).append(run)
    notes = (
        f"AUC, mean over trainings (standard deviation). central: {settings.steps} steps of {settings.batch}; "
        f"federated: {settings.rounds} rounds of {settings.cohort} readers without noise; private: federated with "
        f"noise in the sum, epsilon {EPSILON:g} and delta {DELTA:g} for a reader after all rounds, L2 clip {CLIP:g}. "
        "step 0: untrained.",
    )
    return Table("Trained rankers, MIND subset dev", TRAINED_COLUMNS, [_row(*each) for each in models.items()], notes)


def _row(name: str, runs: Sequence[RankingRun]) -> tuple[Cell, ...]:
    by_schedule = {schedule: [run for run in runs if run.schedule == schedule] for schedule in SCHEDULES}
    federated = [run.end.ndcg10 for run in by_schedule["federated"]]
    return (
        name,
        *(_mean([run.end.auc for run in found]) for found in by_schedule.values()),
        _text(np.mean([run.start.auc for run in runs])),
        _text(np.mean(federated)) if federated else None,
        len({run.seed for run in runs}),
        round(float(np.mean([run.seconds for run in runs]))),
    )


def _mean(aucs: Sequence[float]) -> str | None:
    if not aucs:
        return None
    return _text(np.mean(aucs)) + (f" ({_text(np.std(aucs, ddof=1))})" if len(aucs) > 1 else "")


def _text(figure: float | np.floating[Any]) -> str:
    """Return the figure with four digits: the table's own format would round away a difference of .003."""
    return f"{figure:.4f}"


RankingJob = tuple[str, TrainingSchedule, int]
"""Model, schedule, seed."""


@dataclass(frozen=True)
class RankingStudy(Study[RankingJob, RankingRun]):
    """Models by name, each trained by every schedule `trainings` times; no names train nothing."""

    data: Path
    names: Sequence[str] = ()
    sizes: RankingSettings = field(default_factory=RankingSettings)
    trainings: int = 1
    schedules: Sequence[TrainingSchedule] = SCHEDULES

    @cached_property
    def bench(self) -> Workbench:
        """Return the data. Raises DataMissing and MalformedRow."""
        return Workbench(load_mind(self.data / FOLDER))

    @property
    def jobs(self) -> Sequence[RankingJob]:
        return [(name, schedule, seed) for seed in self.seeds for name in self.names for schedule in self.schedules]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the trainings; untrained scorers use seed 0."""
        return tuple(range(self.trainings))

    @property
    def settings(self) -> Mapping[str, int]:
        """The sizes that change a result."""
        return {name: value for name, value in asdict(self.sizes).items() if name not in OF_THIS_MACHINE}

    def prepare(self) -> None:
        """Read the data. Raises ValueError also if devices can't be simulated as requested."""
        if self.sizes.engine == "ray":
            self._check_ray()
        self.bench  # noqa: B018 - what it raises, it raises now

    def _check_ray(self) -> None:
        here = [name for name in self.names if STUDY_MODELS[name].features]
        if here:
            raise ValueError(f"engine: features can't be sent to Ray, so leave it out for {', '.join(here)}")
        if find_spec("ray") is None:
            raise ValueError("engine: Ray isn't installed: pip install -c constraints.txt '.[ray]'")

    def run(self, job: RankingJob) -> RankingRun:
        name, schedule, seed = job
        study_model = STUDY_MODELS[name]
        model = study_model.model(seed)
        if name not in self._graphs:
            self._graphs[name] = gradient_graph(model, ranker_inputs(study_model.dim, len(study_model.features)))
        return train(self.bench, study_model, model, self._graphs[name], schedule, seed, self.sizes)

    @cached_property
    def _graphs(self) -> dict[str, bytes]:
        """Return the gradient graph of each model, exported once."""
        return {}

    def line(self, job: RankingJob, run: RankingRun) -> str:
        return (
            f"{run.study_model}, {run.schedule}, seed {run.seed}: AUC {run.start.auc:.4f} -> {run.end.auc:.4f}, "
            f"loss {run.first_loss:.3f} -> {run.last_loss:.3f}, {run.seconds:.0f} s"
        )

    def tables(self, runs: Mapping[RankingJob, RankingRun]) -> list[Table]:
        """Untrained scorers, the default ranker's parts, and trained models, if any."""
        mind, vectors = self.bench.mind, self.bench.vectors
        found = [untrained_scorers(untrained_table(mind, vectors, seed=0)), choices(mind, vectors)]
        return [*found, trained_rankers(list(runs.values()), self.sizes)] if runs else found

    def rows(self, job: RankingJob, run: RankingRun) -> list[dict[str, Any]]:
        return [asdict(run)]

    def runs(self, rows: Sequence[Mapping[str, Any]]) -> dict[RankingJob, RankingRun]:
        metrics = [{name: RankingMetrics(**row[name]) for name in ("start", "end")} for row in rows]
        found = [RankingRun(**{**row, **read}) for row, read in zip(rows, metrics, strict=True)]
        return {(run.study_model, run.schedule, run.seed): run for run in found}


def chosen_models(parts: Sequence[str]) -> list[str]:
    """Return the names of the models that contain one of the parts.

    Raises ValueError that lists the names for a part that no name contains.
    """
    unknown = [part for part in parts if not any(part.lower() in name.lower() for name in STUDY_MODELS)]
    if unknown:
        raise ValueError(f"models: {unknown[0]!r} is not one of {', '.join(STUDY_MODELS)}")
    return [name for name in STUDY_MODELS if any(part.lower() in name.lower() for part in parts)]
