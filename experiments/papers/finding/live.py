"""Simulates live systems with groups, and the same systems with one model, in rounds without HTTP.

Rounds use the devices' own tasks and the systems' own protections, strategies and optimizers; only messages and masks
are left out. The results are those of a `SystemSpec` that an operator would run.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate
from backend.federation.grouping import Models, lloyd_step
from backend.federation.optimizers import Memory, MemoryOptimizer, Weights
from backend.federation.protections.registry import resolve
from backend.federation.protections.secure_sum import secure_sum_of
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.grouped import VECTORS, Grouped, moved
from backend.federation.systems.composition import SystemSpec
from backend.federation.systems.finding import PROTOTYPES
from backend.releases.codebooks import topic_centroids
from device_app.ranking.groups import GroupChoice, GroupModels
from device_app.ranking.ranker import FEATURES
from device_app.training.gradients import OnnxGradients
from device_app.training.samples import SampleSource
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.group_gradient import GroupGradientTask
from device_app.training.tasks.nearest_prototype import NearestGroupTask
from device_app.training.tasks.task import LocalTask, Update
from experiments.bench.replayed_readers import summed
from experiments.ranking.models import STUDY_MODELS
from experiments.simulation.clients import gradient_graph, ranker_inputs
from experiments.simulation.rounds import Rounds
from experiments.simulation.strategies.method import ModelChoice
from exporters.graph import export_inference_graph
from exporters.graphs import ranker_graphs
from exporters.signature import parameters
from models.shapes import NEWS_DIM

RANKER_MODEL = STUDY_MODELS["feature ranker 256"]
K = 4
"""Number of groups, as in the release's `ranker.finding`."""

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]


class Population(Protocol):
    """Readers who train, readers used for evaluation, and the articles of both.

    news: vectors [n, D]; their topics are the first groups.
    """

    @property
    def news(self) -> Vectors: ...

    @property
    def readers(self) -> int:
        """The number of readers who can train."""

    def source(self, reader: int) -> SampleSource:
        """Return a training reader's samples."""

    def clicks(self, reader: int) -> Vectors:
        """Return a training reader's clicks [H, D], oldest first."""

    @property
    def judging(self) -> Sequence[Vectors]:
        """Return the clicks [H, D] of each of the m evaluation readers."""

    def aucs(self, choice: ModelChoice) -> Floats:
        """Return the AUC [m] of each evaluation reader by its own model."""


@dataclass(frozen=True)
class ServedModels:
    """The models on devices after this many rounds.

    groups: none before groups exist, or without groups.
    """

    rounds: int
    shared: Weights
    groups: GroupModels | None
    choice: GroupChoice | None

    def models_for(self, judging: Sequence[Vectors]) -> ModelChoice:
        """Return every reader's model, as the reader's device would choose it."""
        if self.groups is None or self.choice is None:
            return ModelChoice.one(self.shared, len(judging))
        which = np.array([self.choice.in_force(clicks) for clicks in judging], dtype=np.int64)
        return ModelChoice([self.groups.of(group) for group in range(self.groups.size)], which)


class LiveRounds:
    """Rounds of any system that trains the default ranker's architecture.

    clustering: the system of the rounds that form groups again.
    """

    def __init__(self, population: Population, clustering: SystemSpec = PROTOTYPES) -> None:
        torch.set_num_threads(1)
        self.population, self._clustering = population, clustering
        self.model = RANKER_MODEL.model(0)
        self._engine = OnnxGradients(gradient_graph(self.model, ranker_inputs(NEWS_DIM, len(FEATURES))))

    @cached_property
    def start(self) -> dict[str, Vectors]:
        return {name: value.numpy().copy() for name, value in parameters(self.model).items()}

    @cached_property
    def _score(self) -> bytes:
        spec = next(each for each in ranker_graphs(self.model) if each.purpose == "score")
        graph: bytes = export_inference_graph(self.model, spec).SerializeToString(deterministic=True)
        return graph

    def releases(self, spec: SystemSpec, *, rounds: int, cohort: int, every: int, seed: int) -> Iterator[ServedModels]:
        """Yield the first release, and one after every `every` rounds.

        Noise comes from a seeded generator, by the live mechanism. Raises ValueError for a system that steps neither
        one model nor groups by secure sums.
        """
        optimizer, strategy = spec.optimizer, spec.strategy
        if resolve(spec.protection).radius is None or optimizer is None:
            raise ValueError(f"system: {spec.name} does not step by secure sums")
        whole = FullGradientTask(spec.negatives, spec.samples_limit, tuple(FEATURES))
        plan = Rounds(rounds, cohort, self.population.readers, seed)
        if isinstance(strategy, Grouped):
            found = self._grouped(strategy, spec, optimizer, whole, plan)
        elif isinstance(strategy, FedAvg):
            found = self._common(strategy, spec, optimizer, whole, plan)
        else:
            raise ValueError(f"system: {spec.name} trains neither one model nor groups")
        return (served for served in found if served.rounds % every == 0)

    def _common(
        self, strategy: FedAvg, spec: SystemSpec, optimizer: MemoryOptimizer, whole: FullGradientTask, plan: Rounds
    ) -> Iterator[ServedModels]:
        weights, memory = self.start, Memory()
        yield ServedModels(0, weights, None, None)
        for number in range(1, plan.rounds + 1):
            total = self._sum(spec, plan, number, weights, lambda reader: whole)
            weights, memory = optimizer.advance(weights, strategy.gradient(total), memory)
            yield ServedModels(number, weights, None, None)

    def _grouped(
        self,
        strategy: Grouped,
        spec: SystemSpec,
        optimizer: MemoryOptimizer,
        whole: FullGradientTask,
        plan: Rounds,
    ) -> Iterator[ServedModels]:
        protection, models = secure_sum_of(spec.protection), Models.alike(self.start, K)
        groups = self._first(models, plan.seed)
        choice = self._choice(groups)
        chosen: dict[int, int] = {}

        def task_of(reader: int) -> LocalTask:
            if reader not in chosen:
                chosen[reader] = choice.in_force(self.population.clicks(reader))
            return GroupGradientTask(whole, groups, chosen[reader], protection.clip)

        yield ServedModels(0, self.start, groups, choice)
        for number in range(1, plan.rounds + 1):
            models, _ = strategy.advance(
                models, self._sum(spec, plan, number, self.start, task_of), protection, optimizer
            )
            groups = replace(groups, weights=_blocks(models))
            if number % strategy.recluster_every == 0:
                models, groups = self._clustered(models, groups, choice, plan, number)
                choice = self._choice(groups)
                chosen.clear()
            yield ServedModels(number, models.shared.weights, groups, choice)

    def _clustered(
        self, models: Models, groups: GroupModels, choice: GroupChoice, plan: Rounds, number: int
    ) -> tuple[Models, GroupModels]:
        """Run the clustering vote that follows every T rounds, as `Clustering` concludes it."""
        protection = secure_sum_of(self._clustering.protection)
        dimensions = self.population.news.shape[1]

        def task_of(reader: int) -> LocalTask:
            return NearestGroupTask(choice, self.population.clicks(reader), groups.size, dimensions, protection.clip)

        # A different cohort from the preceding round's.
        total = self._sum(self._clustering, plan, plan.rounds + number, self.start, task_of)
        after = models.reinitialised(moved(total, protection))
        drafted = lloyd_step(total.sums()[VECTORS], groups.next_centroids)
        now, under = groups.next_centroids, groups.next_vectors
        return after, GroupModels(_blocks(after), now, under, drafted, dict(models.shared.weights))

    def _sum(
        self, system: SystemSpec, plan: Rounds, number: int, weights: Weights, task_of: Callable[[int], LocalTask]
    ) -> Aggregate:
        devices = _Devices(self.population, self._engine, plan.seed, task_of)
        noise = np.random.default_rng((plan.seed, number, plan.readers))
        return summed(devices, weights, plan.cohort_of(number), number, system, noise)

    def _first(self, models: Models, seed: int) -> GroupModels:
        centroids, _ = topic_centroids(self.population.news, basis_size=K, seed=seed)
        return GroupModels(_blocks(models), centroids, self.start, centroids, self.start)

    def _choice(self, groups: GroupModels) -> GroupChoice:
        return GroupChoice(self._score, groups, features=len(FEATURES))


@dataclass(frozen=True)
class _Devices:
    population: Population
    engine: OnnxGradients
    seed: int
    task_of: Callable[[int], LocalTask]

    def update(self, params: Weights, reader: int, round_number: int) -> Update:
        rng = np.random.default_rng((self.seed, round_number, reader))
        return self.task_of(reader).run(params, self.population.source(reader), self.engine, rng)


def _blocks(models: Models) -> dict[str, Vectors]:
    return {name: np.stack([group.weights[name] for group in models.groups]) for name in models.shared.weights}
