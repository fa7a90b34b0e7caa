"""Trains FINDING, vanilla federated learning and the other baselines on one split of MIND's subset."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from backend.federation.optimizers import Adam, StatefulOptimizer
from device_app.training.gradients import OnnxGradients
from device_app.training.tasks.full_gradient import FullGradientTask
from experiments.datasets.mind import FOLDER, load_mind
from experiments.papers.finding.methods import BASES, BUILDERS, CENTRAL, BaseRanker, Setting, Values
from experiments.papers.finding.protocol import Protocol, TestImpressions, rows_of, split, vectors_of
from experiments.ranking.evaluation import model_scores
from experiments.ranking.models import STUDY_MODELS, StudyModel
from experiments.ranking.training import Workbench, make_device
from experiments.simulation.central import train_centrally
from experiments.simulation.clients import gradient_graph, ranker_inputs
from experiments.simulation.readers import Library
from experiments.simulation.rounds import Rounds
from experiments.simulation.strategies.method import DeviceReaders, Method, ModelChoice
from exporters.signature import parameters
from models.metrics import auc, mrr, ndcg
from models.shapes import CLICKS, NEGATIVES

VALIDATION_SEED = 1_000
"""The seed of trainings that choose hyper-parameters; the table's seeds count from 0."""
Metrics = NDArray[np.float64]
METRICS = ("AUC", "MRR", "nDCG@5", "nDCG@10")


@dataclass(frozen=True)
class FindingSizes:
    """Sizes of rounds: readers, and at most this many samples each.

    central: one step per round, in batches.
    """

    rounds: int = 150
    cohort: int = 50
    samples_limit: int = 32
    batch: int = 256


@dataclass(frozen=True)
class Job:
    base: str
    method: str
    seed: int
    values: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, base: str, method: str, seed: int, values: Values) -> Job:
        return cls(base, method, seed, tuple(sorted(values.items())))


@dataclass(frozen=True)
class Result:
    """metrics [impressions, 4] in the order of METRICS; known: which are of known readers; note: for the table.

    moves: how many readers changed their group at each clustering.
    """

    job: Job
    metrics: Metrics
    known: NDArray[np.bool_]
    seconds: float
    models: int
    note: str = ""
    moves: tuple[int, ...] = ()

    def auc(self, rows: NDArray[np.bool_] | None = None) -> float:
        """The mean AUC over all or some impressions."""
        return float(self.metrics[slice(None) if rows is None else rows, 0].mean())


class FindingTrainer:
    """The data and models of the study, made at first use."""

    def __init__(self, data: Path, sizes: FindingSizes) -> None:
        self.sizes = sizes
        self._work = Workbench(load_mind(data / FOLDER))

    @cached_property
    def protocol(self) -> Protocol:
        return split(self._work.mind)

    def run(self, job: Job, part: str) -> Result:
        """Train, and evaluate on 'validation' or 'test'."""
        began = time.perf_counter()
        base = BASES[job.base]
        study_model = STUDY_MODELS[base.study_model]
        library = self._work.library(study_model)
        model = study_model.model(job.seed)
        judged: TestImpressions = getattr(self.protocol, part)
        known, cold, note, moves = (self._central if job.method == CENTRAL else self._federated)(
            job, base, study_model, model, library, judged
        )
        metrics = np.zeros((len(judged.readers), len(METRICS)))
        metrics[judged.known] = _metrics(judged, judged.known, known, model, library)
        metrics[~judged.known] = _metrics(judged, ~judged.known, cold, model, library)
        used = len({*known.which.tolist()}) if len(known.models) > 1 else 1
        return Result(job, metrics, judged.known, time.perf_counter() - began, used, note, moves)

    def _federated(
        self,
        job: Job,
        base: BaseRanker,
        study_model: StudyModel,
        model: nn.Module,
        library: Library,
        judged: TestImpressions,
    ) -> tuple[ModelChoice, ModelChoice, str, tuple[int, ...]]:
        parts, sizes = self.protocol, self.sizes
        task = FullGradientTask(NEGATIVES, sizes.samples_limit, ())
        device = make_device(parts.samples, library, self._graph(study_model, model), (), job.seed, task)
        method: Method = BUILDERS[job.method](
            Setting(
                DeviceReaders(device),
                _start(model),
                study_model.learning_rate,
                base.layers,
                parts.samples.readers,
                vectors_of(model, library, parts.clicks),
                job.seed,
                library.vectors[: library.padding],
            ),
            base,
            dict(job.values),
        )
        plan = Rounds(sizes.rounds, sizes.cohort, parts.samples.readers, job.seed)
        for number in range(sizes.rounds):
            method.run_round(number, plan.cohort_of(number))
        clicks = judged.impressions.histories.last(CLICKS, padding=library.padding)
        known = method.known(judged.readers[judged.known])
        cold = method.cold(vectors_of(model, library, clicks[~judged.known]))
        return known, cold, str(getattr(method, "cost", "")), getattr(method, "moves", ())

    def _central(
        self,
        job: Job,
        base: BaseRanker,
        study_model: StudyModel,
        model: nn.Module,
        library: Library,
        judged: TestImpressions,
    ) -> tuple[ModelChoice, ModelChoice, str, tuple[int, ...]]:
        trained = train_centrally(
            OnnxGradients(self._graph(study_model, model)),
            self.protocol.samples,
            library,
            _start(model),
            StatefulOptimizer(Adam(study_model.learning_rate)),
            steps=self.sizes.rounds,
            batch=self.sizes.batch,
            negatives=NEGATIVES,
            seed=job.seed,
        )
        known = int(judged.known.sum())
        return (
            ModelChoice.one(trained.weights, known),
            ModelChoice.one(trained.weights, len(judged.readers) - known),
            "",
            (),
        )

    def _graph(self, study_model: StudyModel, model: nn.Module) -> bytes:
        return gradient_graph(model, ranker_inputs(study_model.dim))


def best(results: Iterable[Result]) -> dict[tuple[str, str], Result]:
    """Return the result with the greatest AUC for each base and method; the first among equals."""
    found: dict[tuple[str, str], Result] = {}
    for result in results:
        key = (result.job.base, result.job.method)
        if key not in found or result.auc() > found[key].auc():
            found[key] = result
    return found


def _start(model: nn.Module) -> Mapping[str, NDArray[np.float32]]:
    return {name: value.numpy().copy() for name, value in parameters(model).items()}


def _metrics(
    judged: TestImpressions, rows: NDArray[np.bool_], choice: ModelChoice, model: nn.Module, library: Library
) -> Metrics:
    """Return metrics [rows, 4] of every impression, by its reader's model."""
    places = np.flatnonzero(rows)
    found = np.zeros((len(places), len(METRICS)))
    for used in np.unique(choice.which):
        mine = np.flatnonzero(choice.which == used)
        impressions = rows_of(judged.impressions, places[mine])
        scores = model_scores(impressions, model, choice.models[int(used)], library)
        for place, (start, end) in zip(mine, pairwise(impressions.candidates.offsets), strict=True):
            labels, values = impressions.clicked[start:end], scores[start:end]
            found[place] = (
                auc(labels, values),
                mrr(labels, values),
                ndcg(labels, values, 5),
                ndcg(labels, values, 10),
            )
    return found
