"""How much of its own a group keeps: lambda(t, i) by round and layer (FINDING, eqs. 4 to 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping.layers import Layers


class Personalisation(Protocol):
    """lambda of every trained layer, the bottom one first."""

    def shares(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """[len(layers)] from 0, all global, to 1, all the group's own; rounds are counted from 1."""
        ...


@dataclass(frozen=True)
class TimeAndLayer:
    """lambda(t, i) = g(t) h(i), g(t) = 1 - alpha^-t, h(i) = ((i + 1) / N)^beta, i = 0 the bottom layer.

    The paper's alpha = 1.0003 is for 12,000 rounds: g reaches one half after 2,311 rounds, and .044 after 150.
    """

    alpha: float = 1.0003
    beta: float = 0.5

    def __post_init__(self) -> None:
        if not self.alpha > 1:
            raise ValueError(f"alpha: above 1, got {self.alpha}")
        if not self.beta >= 0:
            raise ValueError(f"beta: at least 0, got {self.beta}")

    def of_time(self, round_number: int) -> float:
        """g(t)."""
        return float(-np.expm1(-round_number * np.log(self.alpha)))

    def of_layers(self, layers: Layers) -> NDArray[np.float64]:
        """h(i) of the trained layers."""
        from_bottom = np.arange(layers.frozen_below, layers.depth, dtype=np.float64)
        found: NDArray[np.float64] = ((from_bottom + 1) / layers.depth) ** self.beta
        return found

    def shares(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """g(t) h(i)."""
        return self.of_time(round_number) * self.of_layers(layers)


@dataclass(frozen=True)
class Constant:
    """One lambda for all rounds and layers: 0 is vanilla federated learning, 1 is clustered learning."""

    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share: from 0 to 1, got {self.share}")

    def shares(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """The same everywhere."""
        return np.full(len(layers), self.share)
