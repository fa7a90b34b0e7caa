"""MIND's readers in rounds of the default ranker: no release may fall below the first on other days' readers.

As the fleet replays them (device_app/fleet/replay.py): samples are clicks in shown lists alone, since histories have no
list; and nothing was counted, so popularity is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from backend.federation.aggregate import Aggregate
from backend.federation.optimizers import Memory
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.systems.system import SystemSpec
from device_app.ranking.features import FEATURES
from device_app.training.tasks.full_gradient import FullGradientTask
from device_app.training.tasks.task import Update
from device_app.wire.layout import WeightedSum
from device_app.wire.protections import SecureSum
from experiments.datasets.mind import Mind
from experiments.datasets.ragged import Ragged
from experiments.datasets.samples import TrainingSamples
from experiments.ranking.contestants import CONTESTANTS
from experiments.ranking.evaluation import evaluate_model
from experiments.ranking.study import Workbench, make_device
from experiments.simulation.clients import Device
from experiments.simulation.engines import gradient_graph, ranker_inputs
from experiments.simulation.readers import Library
from exporters.signature import parameters
from models.shapes import NEWS_DIM

CONTESTANT = CONTESTANTS["feature ranker 256"]
POPULARITY = tuple(FEATURES).index("popularity")

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Release:
    """After so many rounds: dev AUC."""

    rounds: int
    auc: float


class Replay:
    """MIND as a newsroom's readers."""

    def __init__(self, mind: Mind) -> None:
        torch.set_num_threads(1)
        bench = Workbench(mind)
        self._dev = mind.dev
        self._samples = shown_only(bench.samples)
        self._library = uncounted(bench.library(CONTESTANT))
        self._model = CONTESTANT.model(0)
        self._graph = gradient_graph(self._model, ranker_inputs(NEWS_DIM, len(CONTESTANT.features)))

    @property
    def readers(self) -> int:
        """Who can train."""
        return self._samples.readers

    def releases(self, spec: SystemSpec, *, rounds: int, cohort: int, every: int, seed: int) -> Iterator[Release]:
        """The first release, and one after every so many rounds; noise from a seeded generator, with the live law."""
        law, strategy = spec.protection, spec.strategy
        assert isinstance(law, SecureSum)
        assert isinstance(strategy, FedAvg)
        assert spec.optimizer is not None
        task = FullGradientTask(spec.negatives, spec.samples_limit, CONTESTANT.features)
        device = make_device(self._samples, self._library, self._graph, (), seed, task)
        weights: Weights = {name: value.numpy().copy() for name, value in parameters(self._model).items()}
        memory = Memory()
        yield Release(0, self._auc(weights))
        for number in range(1, rounds + 1):
            rng = np.random.default_rng((seed, number))
            drawn = rng.choice(self.readers, size=cohort, replace=False)
            total = opened(device, weights, [int(each) for each in drawn], number, law, rng)
            weights, memory = spec.optimizer.advance(weights, strategy.gradient(total), memory)
            if number % every == 0:
                yield Release(number, self._auc(weights))

    def _auc(self, weights: Weights) -> float:
        return evaluate_model(self._dev, self._model, weights, self._library).auc


def opened(
    device: Device, weights: Weights, readers: list[int], number: int, law: SecureSum, rng: np.random.Generator
) -> Aggregate:
    """What the secure sum of these readers would open to, but for its fixed point."""
    sums: dict[str, NDArray[np.float64]] = {}
    count = 0
    for reader in readers:
        update = device.update(weights, reader, number)
        weight = min(update.samples, law.weight_limit)
        factor = weight * clip_factor(update, law.clip)
        for name, each in update.tensors.items():
            sums[name] = sums.get(name, 0.0) + factor * each.astype(np.float64)
        count += weight
    spread = law.sigma * 2.0**-law.fraction_bits * np.sqrt(len(readers))
    noisy = {name: each + rng.normal(scale=spread, size=each.shape) if spread else each for name, each in sums.items()}
    return Aggregate.of_opened(WeightedSum(noisy, count))


def clip_factor(update: Update, clip: float) -> float:
    """What scales the whole update into the L2 ball."""
    length = float(np.sqrt(sum(np.square(each, dtype=np.float64).sum() for each in update.tensors.values())))
    return min(1.0, clip / length) if length else 1.0


def shown_only(samples: TrainingSamples) -> TrainingSamples:
    """Those with a shown list, and the readers who have any."""
    rows = np.flatnonzero(samples.shown.lengths > 0)
    users = np.unique(samples.reader[rows])
    return TrainingSamples(
        reader=np.searchsorted(users, samples.reader[rows]),
        clicks=samples.clicks[rows],
        positive=samples.positive[rows],
        shown=Ragged.of([samples.shown[int(row)] for row in rows]),
        read=tuple(samples.read[int(user)] for user in users),
        popular=samples.popular,
        news=samples.news,
    )


def uncounted(library: Library) -> Library:
    """Without popularity: that of the train split is known from the very clicks that are trained on."""
    features = library.features
    assert features is not None

    def columns(clicks: NDArray[np.int64], candidates: NDArray[np.int64]) -> NDArray[np.float32]:
        found = features(clicks, candidates)
        found[..., POPULARITY] = 0.0
        return found

    return replace(library, features=columns)
