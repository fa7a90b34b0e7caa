"""What the baselines of personal federated learning share: readers that give gradients, and models for readers.

Every method trains with the devices' own tasks and weighs readers by n_u, the number of their samples, as FINDING does;
SCAFFOLD and pFedMe can count them alike, as they are printed. Its server steps along a pseudo-gradient
(w - mean w_u) / rate with an optimizer of the product, so that one local step is the gradient itself, and methods
differ only in what they are named for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.federation.optimizers import SteppedWeights, Weights
from device_app.training.gradients import GRADIENT_PREFIX
from device_app.training.tasks.task import Update
from experiments.simulation.clients import SimulatedDevice

Tensors = Mapping[str, NDArray[np.float64]]
VectorsAt = Callable[[Weights], NDArray[np.float32]]
"""Weights -> the vectors [n, D] that a model with them gives to n readers."""


@dataclass(frozen=True)
class ModelChoice:
    """Which of the models each of n readers ranks with: models[which[reader]]."""

    models: Sequence[Weights]
    which: NDArray[np.int64]

    @classmethod
    def one(cls, weights: Weights, readers: int) -> ModelChoice:
        """The same model for everybody."""
        return cls((weights,), np.zeros(readers, dtype=np.int64))


class Method(Protocol):
    """A way to train many readers' models together, with what server and devices keep from round to round."""

    def run_round(self, number: int, cohort: Sequence[int]) -> float:
        """One round, numbered from 0, with these readers; gives their mean loss before the step."""
        ...

    def known(self, readers: NDArray[np.int64]) -> ModelChoice:
        """What readers of the training rank with."""
        ...

    def cold(self, vectors_at: VectorsAt) -> ModelChoice:
        """What readers rank with who have taken no part, and of whom only the clicks are known."""
        ...


class GradientReaders(Protocol):
    """Where a method gets readers' gradients from."""

    def update(self, params: Weights, reader: int, round_number: int, step: int = 0) -> Update:
        """A reader's mean gradient and n_u; each step of a round draws samples afresh."""
        ...


@dataclass(frozen=True)
class DeviceReaders:
    """The simulated devices; step 0 draws what a live round's only step does."""

    device: SimulatedDevice

    def update(self, params: Weights, reader: int, round_number: int, step: int = 0) -> Update:
        """A reader's mean gradient and n_u."""
        device = self.device
        seed = (device.seed, round_number, reader, step) if step else (device.seed, round_number, reader)
        return device.task.run(params, device.source(reader), device.grad, np.random.default_rng(seed))


@dataclass(frozen=True)
class LocalRun:
    """Where a reader's local steps ended: weights, the loss before the first step, n_u."""

    weights: SteppedWeights
    loss: float
    samples: int


Slope = Callable[[Weights, Tensors], Tensors]
"""(weights y, the gradient at y) -> the direction that is stepped against."""


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
    """By parameter name, in float64."""
    return {name.removeprefix(GRADIENT_PREFIX): each.astype(np.float64) for name, each in update.tensors.items()}


class RunningMean:
    """A running weighted mean of tensors by name, in float64."""

    def __init__(self) -> None:
        self._sums: dict[str, NDArray[np.float64]] = {}
        self.weight = 0.0

    def add(self, tensors: Mapping[str, NDArray[np.floating[Any]]], weight: float) -> None:
        """One reader's."""
        for name, value in tensors.items():
            self._sums[name] = self._sums.get(name, 0.0) + weight * value.astype(np.float64)
        self.weight += weight

    def value(self) -> dict[str, NDArray[np.float64]]:
        """The mean. Raises ValueError if nothing was added."""
        if not self.weight:
            raise ValueError("weight: the mean of nothing is not defined")
        return {name: np.asarray(total / self.weight) for name, total in self._sums.items()}


def difference(first: Weights, second: Weights, scale: float = 1.0) -> dict[str, NDArray[np.float64]]:
    """(first - second) / scale, in float64."""
    return {
        name: np.asarray((value.astype(np.float64) - second[name].astype(np.float64)) / scale)
        for name, value in first.items()
    }


def check_local(steps: int, rate: float) -> None:
    """Raises ValueError for no step or a rate that is not above 0."""
    if steps < 1:
        raise ValueError(f"steps: at least 1, got {steps}")
    if not rate > 0:
        raise ValueError(f"rate: must be above 0, got {rate}")
