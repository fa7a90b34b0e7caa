"""Server optimizers: how a mean gradient changes the weights, and what is kept of it.

`PublishedAdam` is eqs. 5 and 7 of Efficient-FedRec (EMNLP 2021) as published, which squares the momentum; `FedAdam` and
`Adam` are the optimizers that it names.

An optimizer is an immutable value. Its state (`Memory`) is a separate value that is stored with the round that produced
it, so a restarted server continues exactly where it stopped. `StatefulOptimizer` combines the two for consecutive
rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

Weights = Mapping[str, NDArray[np.floating[Any]]]
"""Weights by parameter name: float32 in production, float64 in tests of identities. A step keeps each parameter's
dtype.
"""
SteppedWeights = dict[str, NDArray[Any]]
Gradient = Mapping[str, NDArray[np.float64]]


class Optimizer(Protocol):
    """Turns weights and a mean gradient, both by parameter name, into new weights."""

    def step(self, weights: Weights, gradient: Gradient) -> SteppedWeights:
        """Return new weights; `weights` are not modified."""
        ...


@dataclass(frozen=True)
class Memory:
    """The state of an optimizer: its steps, and float64 tensors by name ('m.<parameter>')."""

    steps: int = 0
    tensors: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        return save({"steps": np.array(self.steps), **{name: np.array(one) for name, one in self.tensors.items()}})

    @classmethod
    def from_bytes(cls, content: bytes) -> Memory:
        tensors = load(content)
        return cls(int(tensors.pop("steps")), tensors)


class MemoryOptimizer(Protocol):
    """An optimizer as a pure function that takes and returns its state."""

    def advance(self, weights: Weights, gradient: Gradient, memory: Memory) -> tuple[SteppedWeights, Memory]:
        """Return the new weights and the new state; weights without a gradient stay unchanged.

        Start with an empty `Memory()`.
        """
        ...


@dataclass
class StatefulOptimizer:
    """An `Optimizer` for consecutive rounds: a `MemoryOptimizer` with its current state."""

    optimizer: MemoryOptimizer
    memory: Memory = field(default_factory=Memory)

    def step(self, weights: Weights, gradient: Gradient) -> SteppedWeights:
        """Make one step and update `memory`."""
        stepped, self.memory = self.optimizer.advance(weights, gradient, self.memory)
        return stepped


@dataclass(frozen=True)
class Sgd:
    """w <- w - omega G (Uni-FedRec, section 3.5).

    With omega = 1 and G the mean of w - w_u this is FedAvg over weights.
    """

    learning_rate: float

    def __post_init__(self) -> None:
        _check_positive("learning_rate", self.learning_rate)

    def step(self, weights: Weights, gradient: Gradient) -> SteppedWeights:
        """Make one step in float64 and round once at the end."""
        return {
            name: np.asarray(value.astype(np.float64) - self.learning_rate * gradient[name], dtype=value.dtype)
            for name, value in weights.items()
        }

    def advance(self, weights: Weights, gradient: Gradient, memory: Memory) -> tuple[SteppedWeights, Memory]:
        """Make one step; the state holds only the number of steps."""
        moving = {name: value for name, value in weights.items() if name in gradient}
        return dict(weights) | self.step(moving, gradient), Memory(memory.steps + 1)


@dataclass(frozen=True)
class FedAdam:
    """FedAdam without bias correction; tau is the degree of adaptivity.

    Source: Reddi et al. 2021, algorithm 2.

        m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, w <- w - eta m / (sqrt v + tau)

    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    of_momentum: ClassVar[bool] = False
    corrects_bias: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_positive("learning_rate", self.learning_rate)
        _check_positive("tau", self.tau)
        for name, beta in (("beta1", self.beta1), ("beta2", self.beta2)):
            if not 0 <= beta < 1:
                raise ValueError(f"{name}: from 0 to below 1, got {beta}")

    def advance(self, weights: Weights, gradient: Gradient, memory: Memory) -> tuple[SteppedWeights, Memory]:
        """Make one step in float64 and round once at the end."""
        after = _moments(gradient, memory, self.beta1, self.beta2, of_momentum=self.of_momentum)
        mean, square = 1.0, 1.0
        if self.corrects_bias:
            mean, square = 1 - self.beta1**after.steps, 1 - self.beta2**after.steps
        return _descend(weights, gradient, after, self.learning_rate / mean, square, self.tau), after


@dataclass(frozen=True)
class Adam(FedAdam):
    """Adam with bias correction (Kingma and Ba 2015), as in torch.optim.Adam.

    Efficient-FedRec's code uses it. m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, w <- w - eta (m / (1 - b1^k)) /
    (sqrt(v / (1 - b2^k)) + tau)
    """

    beta2: float = 0.999
    tau: float = 1e-8
    corrects_bias: ClassVar[bool] = True


@dataclass(frozen=True)
class PublishedAdam(FedAdam):
    """Efficient-FedRec's eqs. 5 and 7 to the letter: v takes the squared momentum, and no bias is corrected.

        m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) m^2, w <- w - eta m / (sqrt v + tau)

    g is the gradient of the mean loss. The paper's eq. 2 has a minus before that mean and its eqs. 5 and 7 a plus
    before the step: the two cancel. It gives no b1, b2 and tau; these are of Reddi et al. 2021.
    """

    of_momentum: ClassVar[bool] = True


def _moments(gradient: Gradient, memory: Memory, beta1: float, beta2: float, *, of_momentum: bool) -> Memory:
    tensors = dict(memory.tensors)
    for name, slope in gradient.items():
        zero = np.zeros_like(slope, dtype=np.float64)
        tensors[f"m.{name}"] = beta1 * tensors.get(f"m.{name}", zero) + (1 - beta1) * slope
        squared = np.square(tensors[f"m.{name}"] if of_momentum else slope)
        tensors[f"v.{name}"] = beta2 * tensors.get(f"v.{name}", zero) + (1 - beta2) * squared
    return Memory(memory.steps + 1, tensors)


def _descend(
    weights: Weights, gradient: Gradient, memory: Memory, rate: float, square_scale: float, tau: float
) -> SteppedWeights:
    moved = {name: np.array(value) for name, value in weights.items()}
    for name in gradient:
        spread = np.sqrt(memory.tensors[f"v.{name}"] / square_scale) + tau
        exact = weights[name].astype(np.float64) - rate * memory.tensors[f"m.{name}"] / spread
        moved[name] = np.asarray(exact, dtype=weights[name].dtype)
    return moved


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name}: must be above 0, got {value}")
