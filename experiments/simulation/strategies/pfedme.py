"""pFedMe (Dinh et al. 2020): personal models theta_u with a distance penalty to a common one.

theta = argmin f_u(theta) + (rho / 2) |theta - w_u|^2, by some steps; w_u <- w_u - rate rho (w_u - theta), several
times; then the server steps along w - mean w_u: with `alike`, `Sgd(b)` is the paper's w <- (1 - b) w + b mean w_u.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping import Model
from backend.federation.optimizers import MemoryOptimizer, SteppedWeights, Weights
from device_app.training.tasks.task import Update
from experiments.simulation.strategies.method import (
    GradientReaders,
    ModelChoice,
    RunningMean,
    Tensors,
    Vanilla,
    check_local,
    difference,
    local_run,
)


class PFedMe(Vanilla):
    """A `Method`.

    Args:
        rho: the paper's lambda, the weight of |theta - w_u|^2 / 2 in the loss of a personal model.
        inner_steps, inner_rate: number and size of theta's gradient steps for each step of w_u.
        steps, rate: R steps of w_u in a round, and the paper's eta.
        alike: weight readers equally in the server's mean, as published, instead of by n_u.
    """

    def __init__(
        self,
        readers: GradientReaders,
        weights: Weights,
        optimizer: MemoryOptimizer,
        *,
        rho: float,
        inner_steps: int,
        inner_rate: float,
        steps: int,
        rate: float,
        alike: bool = False,
    ) -> None:
        super().__init__(readers, weights, optimizer)
        check_local(steps, rate)
        check_local(inner_steps, inner_rate)
        if not rho > 0:
            raise ValueError(f"rho: must be above 0, got {rho}")
        self._rho, self._inner_steps, self._inner_rate = rho, inner_steps, inner_rate
        self._steps, self._rate, self._alike = steps, rate, alike
        self._thetas: dict[int, SteppedWeights] = {}

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """Step the common model, and recompute the cohort's own models."""
        start = self.model.weights
        mean, losses = RunningMean(), []
        for reader in cohort:
            local: SteppedWeights = {name: np.array(value) for name, value in start.items()}
            for step in range(self._steps):
                theta, loss, samples = self._theta(local, reader, number, step)
                local = {
                    name: np.asarray(value - self._rate * self._rho * (value - theta[name]), dtype=value.dtype)
                    for name, value in local.items()
                }
                if step == 0:
                    losses.append(loss)
            self._thetas[reader] = theta
            mean.add(difference(start, local), 1.0 if self._alike else samples)
        self.model = Model(*self._optimizer.advance(start, mean.value(), self.model.memory))
        return float(np.mean(losses))

    def known(self, readers: NDArray[np.int64]) -> ModelChoice:
        """Return each reader's last theta; the common model for readers who were in no cohort."""
        found = [self._thetas.get(int(reader), self.model.weights) for reader in readers]
        return ModelChoice(found, np.arange(len(readers)))

    def _theta(self, around: Weights, reader: int, number: int, step: int) -> tuple[SteppedWeights, float, int]:
        def slope(weights: Weights, gradient: Tensors) -> Tensors:
            return {name: each + self._rho * (weights[name] - around[name]) for name, each in gradient.items()}

        run = local_run(
            _Later(self._readers, step * self._inner_steps),
            around,
            reader,
            number,
            steps=self._inner_steps,
            rate=self._inner_rate,
            slope=slope,
        )
        return run.weights, run.loss, run.samples


class _Later:
    """The same readers with another first step number, so that every search draws its own samples."""

    def __init__(self, readers: GradientReaders, first: int) -> None:
        self._readers, self._first = readers, first

    def update(self, params: Weights, reader: int, round_number: int, step: int = 0) -> Update:
        return self._readers.update(params, reader, round_number, self._first + step)
