"""What the baselines of personalised federated learning share: gradients of readers, and models for readers.

Every method trains with the devices' own tasks and weights readers by n_u, the number of their samples, as FINDING
does; SCAFFOLD and pFedMe can weight them equally, as published. The server steps along a pseudo-gradient (w - mean w_u)
/ rate with an optimizer of the product, so that one local step is the gradient itself, and methods differ only in what
defines them.

`Vanilla` is vanilla federated learning: one model, the mean gradient of a cohort weighted by n_u (FedSGD).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping import Model
from backend.federation.optimizers import MemoryOptimizer, SteppedWeights, Weights
from device_app.training.gradients import GRADIENT_PREFIX
from device_app.training.tasks.task import Update
from experiments.simulation.clients import SimulatedDevice

Tensors = Mapping[str, NDArray[np.float64]]
VectorsAt = Callable[[Weights], NDArray[np.float32]]
"""Weights -> the vectors [n, D] that a model with them gives to n readers."""


@dataclass(frozen=True)
class ModelChoice:
    """The model with which each of n readers ranks: models[which[reader]]."""

    models: Sequence[Weights]
    which: NDArray[np.int64]

    @classmethod
    def one(cls, weights: Weights, readers: int) -> ModelChoice:
        """Give every reader the same model."""
        return cls((weights,), np.zeros(readers, dtype=np.int64))


class Method(Protocol):
    """Trains many readers' models together, keeping server and device state from round to round."""

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """Run one round, numbered from 0, with these readers; return their mean loss before the step."""

    def known(self, readers: NDArray[np.int64]) -> ModelChoice:
        """Return the models of readers who took part in training."""

    def cold(self, vectors_at: VectorsAt) -> ModelChoice:
        """Return the models of readers who took no part, chosen by their clicks alone."""


class GradientReaders(Protocol):
    """A source of readers' gradients."""

    def update(self, params: Weights, reader: int, round_number: int, step: int = 0) -> Update:
        """Return a reader's mean gradient and n_u; each step of a round draws new samples."""


@dataclass(frozen=True)
class DeviceReaders:
    """The simulated devices; step 0 draws the samples of a live round's only step."""

    device: SimulatedDevice

    def update(self, params: Weights, reader: int, round_number: int, step: int = 0) -> Update:
        device = self.device
        seed = (device.seed, round_number, reader, step) if step else (device.seed, round_number, reader)
        return device.task.run(params, device.source(reader), device.grad, np.random.default_rng(seed))


@dataclass(frozen=True)
class LocalRun:
    """The result of a reader's local steps: weights, the loss before the first step, n_u."""

    weights: SteppedWeights
    loss: float
    samples: int


Slope = Callable[[Weights, Tensors], Tensors]
"""(weights y, the gradient at y) -> the direction to subtract."""


def local_run(
    readers: GradientReaders,
    start: Weights,
    reader: int,
    round_number: int,
    *,
    steps: int,
    rate: float,
    slope: Slope = lambda weights, gradient: gradient,
) -> LocalRun:
    """y <- y - rate slope(y, g(y)), `steps` times from `start`, in the weights' own precision."""
    current: SteppedWeights = {name: np.array(value) for name, value in start.items()}
    losses, samples = [], 0
    for step in range(steps):
        update = readers.update(current, reader, round_number, step)
        direction = slope(current, gradient_of(update))
        current = {
            name: np.asarray(value - rate * direction[name], dtype=value.dtype) for name, value in current.items()
        }
        losses.append(update.loss)
        samples = update.samples
    return LocalRun(current, losses[0], samples)


def gradient_of(update: Update) -> dict[str, NDArray[np.float64]]:
    """Return gradients by parameter name, in float64."""
    return {name.removeprefix(GRADIENT_PREFIX): each.astype(np.float64) for name, each in update.tensors.items()}


class RunningMean:
    """A running weighted mean of tensors by name, in float64."""

    def __init__(self) -> None:
        self._sums: dict[str, NDArray[np.float64]] = {}
        self.weight = 0.0

    def add(self, tensors: Mapping[str, NDArray[np.floating[Any]]], weight: float) -> None:
        for name, value in tensors.items():
            self._sums[name] = self._sums.get(name, 0.0) + weight * value.astype(np.float64)
        self.weight += weight

    def value(self) -> dict[str, NDArray[np.float64]]:
        """Return the mean. Raises ValueError if nothing was added."""
        if not self.weight:
            raise ValueError("weight: the mean of zero updates is not defined")
        return {name: np.asarray(total / self.weight) for name, total in self._sums.items()}


def difference(first: Weights, second: Weights, scale: float = 1.0) -> dict[str, NDArray[np.float64]]:
    """Return (first - second) / scale, in float64."""
    return {
        name: np.asarray((value.astype(np.float64) - second[name].astype(np.float64)) / scale)
        for name, value in first.items()
    }


def check_local(steps: int, rate: float) -> None:
    """Raise ValueError for no steps or a rate that is not above 0."""
    if steps < 1:
        raise ValueError(f"steps: at least 1, got {steps}")
    if not rate > 0:
        raise ValueError(f"rate: must be above 0, got {rate}")


class Vanilla:
    """One global model: federated averaging without groups."""

    def __init__(self, readers: GradientReaders, weights: Weights, optimizer: MemoryOptimizer) -> None:
        self._readers, self._optimizer = readers, optimizer
        self.model = Model(weights)

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        mean, losses = RunningMean(), []
        for reader in cohort:
            update = self._readers.update(self.model.weights, reader, number)
            mean.add(gradient_of(update), update.samples)
            losses.append(update.loss)
        self.model = Model(*self._optimizer.advance(self.model.weights, mean.value(), self.model.memory))
        return float(np.mean(losses))

    def known(self, readers: NDArray[np.int64]) -> ModelChoice:
        return ModelChoice.one(self.model.weights, len(readers))

    def cold(self, vectors_at: VectorsAt) -> ModelChoice:
        return ModelChoice.one(self.model.weights, len(vectors_at(self.model.weights)))
