"""FedProx (Li et al. 2020): several local steps on f_u(y) + (mu / 2) |y - w|^2.

With one local step it is vanilla federated learning, as the proximal gradient is zero at w. mu = 0 is FedAvg.
"""

from collections.abc import Sequence

import numpy as np

from backend.federation.grouping import Model
from backend.federation.optimizers import MemoryOptimizer, Weights
from experiments.simulation.strategies.method import (
    GradientReaders,
    RunningMean,
    Tensors,
    Vanilla,
    check_local,
    difference,
    local_run,
)


class FedProx(Vanilla):
    """A `Method`: vanilla's server with other devices."""

    def __init__(
        self,
        readers: GradientReaders,
        weights: Weights,
        optimizer: MemoryOptimizer,
        *,
        mu: float,
        steps: int,
        rate: float,
    ) -> None:
        super().__init__(readers, weights, optimizer)
        check_local(steps, rate)
        if mu < 0:
            raise ValueError(f"mu: at least 0, got {mu}")
        self._mu, self._steps, self._rate = mu, steps, rate

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """Step the server along the devices' mean movement."""
        start = self.model.weights

        def slope(weights: Weights, gradient: Tensors) -> Tensors:
            return {name: each + self._mu * (weights[name] - start[name]) for name, each in gradient.items()}

        mean, losses = RunningMean(), []
        for reader in cohort:
            run = local_run(self._readers, start, reader, number, steps=self._steps, rate=self._rate, slope=slope)
            mean.add(difference(start, run.weights, self._rate), run.samples)
            losses.append(run.loss)
        self.model = Model(*self._optimizer.advance(start, mean.value(), self.model.memory))
        return float(np.mean(losses))
