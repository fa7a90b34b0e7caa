"""SCAFFOLD (Karimireddy et al. 2020): local steps, corrected by how a reader's gradient differs from the mean.

y <- y - rate (g(y) - c_u + c), S times; c_u+ = c_u - c + (w - y) / (S rate); c += |U_t| / |U| mean (c_u+ - c_u). The
published server is w += rate_g mean (y - w) over equally weighted readers: `alike`, and `Sgd(rate_g rate)`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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


class Scaffold(Vanilla):
    """A `Method`. Control variates start at zero, so the first round is FedAvg's.

    Args:
        everybody: |U|.
        alike: weight readers equally in the server's mean, as published, instead of by n_u.
    """

    def __init__(
        self,
        readers: GradientReaders,
        weights: Weights,
        optimizer: MemoryOptimizer,
        *,
        everybody: int,
        steps: int,
        rate: float,
        alike: bool = False,
    ) -> None:
        super().__init__(readers, weights, optimizer)
        check_local(steps, rate)
        self._everybody, self._steps, self._rate, self._alike = everybody, steps, rate, alike
        self._zero = {name: np.zeros(value.shape) for name, value in weights.items()}
        self._controls: dict[int, dict[str, NDArray[np.float64]]] = {}
        self.control = self._zero

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """Step the server, and update the cohort's control variates."""
        start, control = self.model.weights, self.control
        mean, drift, losses = RunningMean(), RunningMean(), []
        for reader in cohort:
            own = self._controls.get(reader, self._zero)

            def slope(
                weights: Weights, gradient: Tensors, own: Tensors = own
            ) -> Tensors:  # `own` is bound here: the loop goes on
                return {name: each - own[name] + control[name] for name, each in gradient.items()}

            run = local_run(self._readers, start, reader, number, steps=self._steps, rate=self._rate, slope=slope)
            went = difference(start, run.weights, self._rate)
            mean.add(went, 1.0 if self._alike else run.samples)
            fresh = {name: own[name] - control[name] + each / self._steps for name, each in went.items()}
            drift.add(difference(fresh, own), 1.0)
            self._controls[reader] = fresh
            losses.append(run.loss)
        self.model = Model(*self._optimizer.advance(start, mean.value(), self.model.memory))
        part = len(cohort) / self._everybody
        self.control = {name: control[name] + part * each for name, each in drift.value().items()}
        return float(np.mean(losses))
