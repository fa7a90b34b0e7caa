"""Trains Uni-FedRec's recall model by its unified score, centrally and in rounds without HTTP (section 3.5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.federation.optimizers import Adam, Optimizer, Sgd, StatefulOptimizer
from backend.federation.protections.local_laplace import local_laplace_of
from backend.federation.strategies.fedavg import FedAvg
from backend.federation.systems import COMPOSED
from backend.releases.publish import SCORE_NOISE
from device_app.training.gradients import BoundGraph, OnnxGradients
from device_app.training.samples import Samples, SampleSource
from device_app.training.tasks.recall_gradient import RecallTask
from experiments.datasets.mind import RaggedArray
from experiments.datasets.samples import TrainingSamples, left_out
from experiments.recall.measure import Rows
from experiments.recall.uni_fedrec import FirstModel
from experiments.simulation.clients import OneProcess, Protect, SimulatedDevice, in_clear
from experiments.simulation.protections import ElementwiseLaplace
from experiments.simulation.readers import Library, SimulatedReader
from experiments.simulation.rounds import Rounds, Trained, simulate
from exporters.package import export_recall
from models.shapes import BASIS_SIZE, CHANNELS_LIMIT, CLICKS
from protocol.releases import RecallProtocol

UNI_FEDREC = COMPOSED["uni_fedrec"]

NEGATIVES = UNI_FEDREC.negatives
BATCH = 64
RATE = 3e-5
"""Adam's rate, chosen on the validation readers: see docs/results/recall.md."""


@dataclass(frozen=True)
class RecallSizes:
    """Central steps of 64 samples, and rounds with this many readers."""

    steps: int = 150
    rounds: int = 60
    cohort: int = 50


def history_samples(readers: Sequence[Rows], news: int) -> TrainingSamples:
    """Return samples from each reader's last clicks, each after the clicks before it.

    Negatives are drawn by popularity and were never read by the reader. Raises ValueError if no reader has enough
    clicks.
    """
    kept = [clicks for clicks in readers if left_out(len(clicks))]
    if not kept:
        raise ValueError("readers: none has enough clicks for a sample")
    ends = [range(len(clicks) - left_out(len(clicks)), len(clicks)) for clicks in kept]
    pairs = [(reader, end) for reader, mine in enumerate(ends) for end in mine]
    nothing = np.zeros(0, np.int64)
    return TrainingSamples(
        reader=np.array([reader for reader, _ in pairs]),
        clicks=RaggedArray.of([kept[reader][:end] for reader, end in pairs]).last(CLICKS, padding=news),
        positive=np.array([kept[reader][end] for reader, end in pairs], dtype=np.int64),
        shown=RaggedArray.of([nothing] * len(pairs)),
        read=tuple(frozenset(clicks.tolist()) for clicks in kept),
        popular=np.concatenate(kept),
        news=news,
    )


@dataclass(frozen=True)
class AllSamples:
    """All readers' samples as one source, for central training."""

    samples: TrainingSamples
    library: Library

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Return `limit` samples drawn from all readers together."""
        rows = rng.choice(len(self.samples), size=limit, replace=False)
        return self.library.samples(self.samples.clicks[rows], self.samples.candidates(rows, negatives, rng))


class RecallTrainer:
    """A first model's graphs and its training samples."""

    def __init__(self, first: FirstModel, news: NDArray[np.float32], samples: TrainingSamples) -> None:
        self.first, self._samples, self._library = first, samples, Library.of(news)
        exported = export_recall(first.model)
        self._context = BoundGraph(exported.graphs["context"], threads=1)
        self._grad = OnnxGradients(exported.graphs["gradient"])

    def centrally(self, steps: int, seed: int, rate: float = RATE) -> Trained:
        """Train with Adam on batches of all readers' samples."""
        everybody = AllSamples(self._samples, self._library)
        plan = Rounds(steps, 1, 1, seed)
        return self._run(lambda reader: everybody, BATCH, plan, StatefulOptimizer(Adam(rate)), in_clear)

    def in_rounds(self, rounds: int, cohort: int, seed: int, rate: float = RATE) -> Trained:
        """Train with Adam on the mean of readers' gradients, without noise: what an exact secure sum opens."""
        plan = Rounds(rounds, cohort, self._samples.readers, seed)
        return self._run(self._reader, UNI_FEDREC.samples_limit, plan, StatefulOptimizer(Adam(rate)), in_clear)

    def by_the_paper(self, rounds: int, cohort: int, seed: int) -> Trained:
        """Train by the live system `uni_fedrec`: the paper's clip, noise and plain steps."""
        mechanism, optimizer = local_laplace_of(UNI_FEDREC.protection), UNI_FEDREC.optimizer
        assert isinstance(optimizer, Sgd)
        plan = Rounds(rounds, cohort, self._samples.readers, seed)
        return self._run(self._reader, UNI_FEDREC.samples_limit, plan, optimizer, ElementwiseLaplace(mechanism))

    def _reader(self, reader: int) -> SimulatedReader:
        return SimulatedReader(self._samples, reader, self._library)

    def _run(
        self, source: Callable[[int], SampleSource], limit: int, plan: Rounds, optimizer: Optimizer, protect: Protect
    ) -> Trained:
        task = RecallTask(
            contexts=lambda params, clicks, mask: self._context(params, clicks=clicks, click_mask=mask)["contexts"],
            protocol=RecallProtocol(
                basis_size=BASIS_SIZE,
                channels_limit=CHANNELS_LIMIT,
                cluster_distance=self.first.distance,
                score_clip=self.first.model.score_clip,
                score_noise=SCORE_NOISE,
            ),
            negatives=NEGATIVES,
            samples_limit=limit,
        )
        device = SimulatedDevice(task, self._grad, source, plan.seed, protect)
        return simulate(OneProcess(device), self.first.weights, plan, FedAvg(), optimizer)
