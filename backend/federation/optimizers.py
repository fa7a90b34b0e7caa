"""What the server does with an averaged update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[np.float32]]
Gradient = Mapping[str, NDArray[np.float64]]


class Optimizer(Protocol):
    """Turns weights and a mean gradient, by parameter name, into new weights."""

    def step(self, weights: Weights, gradient: Gradient) -> dict[str, NDArray[np.float32]]:
        """New weights; `weights` stay untouched."""
        ...


@dataclass(frozen=True)
class Sgd:
    """w <- w - omega G (ALGORITHMS 2.5)."""

    learning_rate: float

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate: must be above 0, got {self.learning_rate}")

    def step(self, weights: Weights, gradient: Gradient) -> dict[str, NDArray[np.float32]]:
        """One step in float64, rounded once at the end."""
        return {
            name: (value.astype(np.float64) - self.learning_rate * gradient[name]).astype(np.float32)
            for name, value in weights.items()
        }
