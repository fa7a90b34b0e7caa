"""Trainings of the ranking study: central, federated and with noise, evaluated on dev before and after."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import nn

from backend.federation.optimizers import Adam, StatefulOptimizer
from backend.federation.strategies.fedavg import FedAvg
from device_app.training.gradients import OnnxGradients
from device_app.training.tasks.full_gradient import FullGradientTask
from experiments.datasets.mind import Mind
from experiments.datasets.samples import TrainingSamples, training_samples
from experiments.datasets.titles import product_vectors, title_vectors, unit_rows
from experiments.ranking.evaluation import evaluate_model
from experiments.ranking.models import WIDE_DIM, StudyModel, features_of
from experiments.simulation.central import train_centrally
from experiments.simulation.clients import (
    Clients,
    ManyProcesses,
    OneProcess,
    Protect,
    SharedGradients,
    SimulatedDevice,
    in_clear,
)
from experiments.simulation.protections import CentralGaussian, noise_multiplier
from experiments.simulation.readers import Library, SimulatedReader
from experiments.simulation.rounds import Rounds, Trained, simulate
from exporters.signature import parameters
from models.metrics import RankingMetrics
from models.shapes import NEGATIVES, NEWS_DIM, private_names

TrainingSchedule = Literal["central", "federated", "private"]
SCHEDULES: tuple[TrainingSchedule, ...] = ("central", "federated", "private")
"""private: federated with noise inside the sum, (EPSILON, DELTA) for each reader after all rounds."""
EPSILON, DELTA, CLIP = 2.0, 1e-5, 0.1
LOSSES_AVERAGED = 20


@dataclass(frozen=True)
class RankingSettings:
    """Sizes of the study, fixed before its code was written.

    engine: what simulates devices: `processes` on this machine, or the cores of a Ray cluster, whose address is
    `cluster`; None starts one on this machine. Raises ValueError for a size that the engine would ignore.
    """

    steps: int = 400
    batch: int = 64
    rounds: int = 150
    cohort: int = 50
    samples_limit: int = 32
    processes: int = 1
    engine: Literal["here", "ray"] = "here"
    cluster: str | None = None

    def __post_init__(self) -> None:
        if self.engine == "ray" and self.processes > 1:
            raise ValueError("processes: can't be limited with engine ray, which uses every core of the cluster")
        if self.engine != "ray" and self.cluster is not None:
            raise ValueError("cluster: only allowed with engine ray")


OF_THIS_MACHINE = frozenset({"processes", "engine", "cluster"})
"""Settings that don't change results."""


@dataclass(frozen=True)
class RankingRun:
    """One training: dev metrics at step 0 and at the end, mean loss of the first and last steps, seconds."""

    study_model: str
    schedule: TrainingSchedule
    seed: int
    start: RankingMetrics
    end: RankingMetrics
    first_loss: float
    last_loss: float
    seconds: float


class Workbench:
    """The data of the study, made at first use."""

    def __init__(self, mind: Mind) -> None:
        self.mind = mind

    @cached_property
    def samples(self) -> TrainingSamples:
        return training_samples(self.mind.train, len(self.mind.news))

    @cached_property
    def vectors(self) -> dict[int, NDArray[np.float32]]:
        """Return unit title vectors by dimension: 384 as pooled, and 256 by the product's head."""
        pooled = title_vectors(self.mind.news.titles)
        return {WIDE_DIM: unit_rows(pooled), NEWS_DIM: product_vectors(pooled, NEWS_DIM)}

    def library(self, study_model: StudyModel) -> Library:
        """Return the vectors, and features if any, that a model uses."""
        features = features_of(study_model.features, self.mind) if study_model.features else None
        return Library.of(self.vectors[study_model.dim], features)


def train(
    bench: Workbench,
    study_model: StudyModel,
    model: nn.Module,
    graph: bytes,
    schedule: TrainingSchedule,
    seed: int,
    settings: RankingSettings,
) -> RankingRun:
    """Run one training by one schedule, evaluated on dev before and after."""
    began = time.perf_counter()
    library = bench.library(study_model)
    weights = {name: value.numpy() for name, value in parameters(model).items()}
    start = evaluate_model(bench.mind.dev, model, weights, library)
    ways: dict[TrainingSchedule, Callable[[], Trained]] = {
        "central": lambda: train_centrally(
            SharedGradients(OnnxGradients(graph), private_names(model)),
            bench.samples,
            library,
            weights,
            StatefulOptimizer(Adam(study_model.learning_rate)),
            steps=settings.steps,
            batch=settings.batch,
            negatives=NEGATIVES,
            seed=seed,
        ),
        "federated": lambda: train_in_rounds(bench.samples, library, model, graph, study_model, seed, settings),
        "private": lambda: train_in_rounds(
            bench.samples, library, model, graph, study_model, seed, settings, _gaussian(settings, bench.samples)
        ),
    }
    trained = ways[schedule]()
    return RankingRun(
        study_model.name,
        schedule,
        seed,
        start,
        evaluate_model(bench.mind.dev, model, trained.weights, library),
        float(np.mean(trained.losses[:LOSSES_AVERAGED])),
        float(np.mean(trained.losses[-LOSSES_AVERAGED:])),
        time.perf_counter() - began,
    )


def train_in_rounds(
    samples: TrainingSamples,
    library: Library,
    model: nn.Module,
    graph: bytes,
    study_model: StudyModel,
    seed: int,
    settings: RankingSettings,
    protect: Protect = in_clear,
) -> Trained:
    """Train a model, which isn't changed, in rounds of simulated devices. graph: its gradient graph."""

    def rounds(clients: Clients) -> Trained:
        plan = Rounds(settings.rounds, settings.cohort, samples.readers, seed)
        weights = {name: value.numpy() for name, value in parameters(model).items()}
        return simulate(clients, weights, plan, FedAvg(), StatefulOptimizer(Adam(study_model.learning_rate)))

    task = FullGradientTask(NEGATIVES, settings.samples_limit, study_model.features)
    make = partial(make_device, samples, library, graph, private_names(model), seed, task, protect)
    if library.features is not None:  # features are a closure, which can't be pickled
        return rounds(OneProcess(make()))
    if settings.engine == "ray":
        from experiments.simulation.ray_clients import RayClients  # an optional extra that few install

        with RayClients(make, settings.cluster) as cluster:
            return rounds(cluster)
    if settings.processes == 1:
        return rounds(OneProcess(make()))
    with ManyProcesses(make, settings.processes) as many:
        return rounds(many)


def _gaussian(settings: RankingSettings, samples: TrainingSamples) -> CentralGaussian:
    multiplier = noise_multiplier(
        epsilon=EPSILON, delta=DELTA, cohort=settings.cohort, readers=samples.readers, rounds=settings.rounds
    )
    return CentralGaussian(CLIP, multiplier, settings.cohort)


def make_device(
    samples: TrainingSamples,
    library: Library,
    graph: bytes,
    private: tuple[str, ...],
    seed: int,
    task: FullGradientTask,
    protect: Protect = in_clear,
) -> SimulatedDevice:
    """Return a simulated device with the task and the gradient engine of a real one."""
    source = partial(SimulatedReader, samples, library=library)
    return SimulatedDevice(task, SharedGradients(OnnxGradients(graph), private), source, seed, protect)
