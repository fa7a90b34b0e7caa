"""FedPer (Arivazhagan et al. 2019): shared base layers below each reader's own top layers.

The paper cuts between news encoder and user encoder. Our news vectors are frozen, so the cut goes through the ranker.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping import Layers, Model
from backend.federation.optimizers import MemoryOptimizer, SteppedWeights, Weights
from experiments.simulation.strategies.method import (
    GradientReaders,
    ModelChoice,
    RunningMean,
    VectorsAt,
    check_local,
    difference,
    local_run,
)


class FedPer:
    """A `Method`.

    Args:
        layers: the model's layers; those from `first_own` on stay on the device.
        steps, rate: of a device's SGD, on base and top together; the device keeps the top, the server averages the
        base.
    """

    def __init__(
        self,
        readers: GradientReaders,
        weights: Weights,
        optimizer: MemoryOptimizer,
        *,
        layers: Layers,
        first_own: int,
        steps: int,
        rate: float,
    ) -> None:
        check_local(steps, rate)
        self._readers, self._optimizer, self._steps, self._rate = readers, optimizer, steps, rate
        self._own = {name for name in weights if layers.place(name) >= first_own}
        self._top: SteppedWeights = {name: np.array(weights[name]) for name in self._own}
        self._tops: dict[int, SteppedWeights] = {}
        self.base = Model({name: value for name, value in weights.items() if name not in self._own})

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """Step the base; the cohort's tops are updated."""
        mean, losses = RunningMean(), []
        for reader in cohort:
            start = self._of(reader)
            run = local_run(self._readers, start, reader, number, steps=self._steps, rate=self._rate)
            mean.add(difference(self.base.weights, run.weights, self._rate), run.samples)
            self._tops[reader] = {name: run.weights[name] for name in self._own}
            losses.append(run.loss)
        if self.base.weights:
            self.base = Model(*self._optimizer.advance(self.base.weights, mean.value(), self.base.memory))
        return float(np.mean(losses))

    def known(self, readers: NDArray[np.int64]) -> ModelChoice:
        """Return each reader's own top; readers who were in no cohort have the initial top."""
        return ModelChoice([self._of(int(reader)) for reader in readers], np.arange(len(readers)))

    def cold(self, vectors_at: VectorsAt) -> ModelChoice:
        """Return the mean of all trained tops, which a server that collected them could hand out."""
        mean = RunningMean()
        for top in self._tops.values() or (self._top,):
            mean.add(top, 1.0)
        top = {name: np.asarray(value, dtype=self._top[name].dtype) for name, value in mean.value().items()}
        weights = dict(self.base.weights) | top
        return ModelChoice.one(weights, len(vectors_at(weights)))

    def _of(self, reader: int) -> Weights:
        return dict(self.base.weights) | self._tops.get(reader, self._top)
