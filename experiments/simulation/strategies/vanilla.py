"""Vanilla federated learning: one model, the mean gradient of a cohort weighted by n_u (FedSGD)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping.group_models import Model
from backend.federation.optimizers import MemoryOptimizer, Weights
from experiments.simulation.strategies.method import GradientReaders, ModelChoice, RunningMean, VectorsAt, gradient_of


class Vanilla:
    """One model for everybody: federated averaging without groups."""

    def __init__(self, readers: GradientReaders, weights: Weights, optimizer: MemoryOptimizer) -> None:
        self._readers, self._optimizer = readers, optimizer
        self.model = Model(weights)

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """One step."""
        mean, losses = RunningMean(), []
        for reader in cohort:
            update = self._readers.update(self.model.weights, reader, number)
            mean.add(gradient_of(update), update.samples)
            losses.append(update.loss)
        self.model = Model(*self._optimizer.advance(self.model.weights, mean.value(), self.model.memory))
        return float(np.mean(losses))

    def known(self, readers: NDArray[np.int64]) -> ModelChoice:
        """Everybody's model."""
        return ModelChoice.one(self.model.weights, len(readers))

    def cold(self, vectors_at: VectorsAt) -> ModelChoice:
        """Everybody's model."""
        return ModelChoice.one(self.model.weights, len(vectors_at(self.model.weights)))
