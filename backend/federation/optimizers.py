"""What the server does with an averaged gradient, and what it remembers of it from round to round.

FedAdam is eq. 5 of Efficient-FedRec (EMNLP 2021), for its user model, and Adam eq. 7, for its news model; what differs
from the paper stands with each class.

An optimizer is a frozen value; its memory is another value, stored with the round that made it, so that a server that
is restarted goes on exactly. `Carried` joins the two where rounds follow each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

Weights = Mapping[str, NDArray[np.floating[Any]]]
"""By parameter name; float32 live, float64 where identities are tested. A step keeps each parameter's own dtype."""
SteppedWeights = dict[str, NDArray[Any]]
Gradient = Mapping[str, NDArray[np.float64]]


class Optimizer(Protocol):
    """Turns weights and a mean gradient, by parameter name, into new weights."""

    def step(self, weights: Weights, gradient: Gradient) -> SteppedWeights:
        """New weights; `weights` stay untouched."""
        ...


@dataclass(frozen=True)
class Memory:
    """What an optimizer remembers: how many steps it has made, and float64 tensors by name ('m.<parameter>')."""

    steps: int = 0
    tensors: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """As safetensors, exact."""
        return save({"steps": np.array(self.steps), **{name: np.array(one) for name, one in self.tensors.items()}})

    @classmethod
    def from_bytes(cls, content: bytes) -> Memory:
        """What `to_bytes` wrote. Raises KeyError or safetensors' own error for anything else."""
        tensors = load(content)
        return cls(int(tensors.pop("steps")), tensors)


class MemoryOptimizer(Protocol):
    """An optimizer as a pure function of its memory."""

    def advance(self, weights: Weights, gradient: Gradient, memory: Memory) -> tuple[SteppedWeights, Memory]:
        """New weights and the new memory; weights without a gradient stay. A fresh `Memory()` begins."""
        ...


@dataclass
class Carried:
    """An `Optimizer` for one round after the other: a `MemoryOptimizer` with the memory it has by now."""

    optimizer: MemoryOptimizer
    memory: Memory = field(default_factory=Memory)

    def step(self, weights: Weights, gradient: Gradient) -> SteppedWeights:
        """One step; `memory` moves on."""
        stepped, self.memory = self.optimizer.advance(weights, gradient, self.memory)
        return stepped


@dataclass(frozen=True)
class Sgd:
    """w <- w - omega G, Uni-FedRec, section 3.5. With omega = 1 and G the mean of w - w_u it is FedAvg over weights."""

    learning_rate: float

    def __post_init__(self) -> None:
        _check_positive("learning_rate", self.learning_rate)

    def step(self, weights: Weights, gradient: Gradient) -> SteppedWeights:
        """One step in float64, rounded once at the end."""
        return {
            name: np.asarray(value.astype(np.float64) - self.learning_rate * gradient[name], dtype=value.dtype)
            for name, value in weights.items()
        }

    def advance(self, weights: Weights, gradient: Gradient, memory: Memory) -> tuple[SteppedWeights, Memory]:
        """One step; nothing is remembered but the count."""
        moving = {name: value for name, value in weights.items() if name in gradient}
        return dict(weights) | self.step(moving, gradient), Memory(memory.steps + 1)


@dataclass(frozen=True)
class Adam:
    """torch.optim.Adam: moments corrected for their start at zero (Kingma and Ba 2015). Efficient-FedRec's code.

    m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, w <- w - eta (m / (1 - b1^k)) / (sqrt(v / (1 - b2^k)) + tau)
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    tau: float = 1e-8

    def __post_init__(self) -> None:
        _check_adam(self.learning_rate, self.beta1, self.beta2, self.tau)

    def advance(self, weights: Weights, gradient: Gradient, memory: Memory) -> tuple[SteppedWeights, Memory]:
        """One step in float64, rounded once at the end."""
        after = _moments(gradient, memory, self.beta1, self.beta2)
        mean, square = 1 - self.beta1**after.steps, 1 - self.beta2**after.steps
        return _descend(weights, gradient, after, self.learning_rate / mean, square, self.tau), after


@dataclass(frozen=True)
class FedAdam:
    """Reddi et al. 2021, algorithm 2: no correction, and tau as the degree of adaptivity.

    m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, w <- w - eta m / (sqrt v + tau)

    Deviation from Efficient-FedRec: v takes the gradient squared, where the paper prints the momentum squared,
    and the step descends, where the paper prints a plus (Efficient-FedRec, eqs. 5 and 7).
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def __post_init__(self) -> None:
        _check_adam(self.learning_rate, self.beta1, self.beta2, self.tau)

    def advance(self, weights: Weights, gradient: Gradient, memory: Memory) -> tuple[SteppedWeights, Memory]:
        """One step in float64, rounded once at the end."""
        after = _moments(gradient, memory, self.beta1, self.beta2)
        return _descend(weights, gradient, after, self.learning_rate, 1.0, self.tau), after


def _moments(gradient: Gradient, memory: Memory, beta1: float, beta2: float) -> Memory:
    tensors = dict(memory.tensors)
    for name, slope in gradient.items():
        zero = np.zeros_like(slope, dtype=np.float64)
        tensors[f"m.{name}"] = beta1 * tensors.get(f"m.{name}", zero) + (1 - beta1) * slope
        tensors[f"v.{name}"] = beta2 * tensors.get(f"v.{name}", zero) + (1 - beta2) * np.square(slope)
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


def _check_adam(learning_rate: float, beta1: float, beta2: float, tau: float) -> None:
    _check_positive("learning_rate", learning_rate)
    _check_positive("tau", tau)
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if not 0 <= beta < 1:
            raise ValueError(f"{name}: from 0 to below 1, got {beta}")
