"""Two values of lambda(t, i) with which FINDING equals another known method.

They are the oracles of these identities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping import Layers


@dataclass(frozen=True)
class FromLayer:
    """lambda = 1[i >= first], i among the trained layers: a global base below private tops, FedPer's cut."""

    first: int

    def coefficients(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """Zeros, then ones."""
        return (np.arange(len(layers)) >= self.first).astype(np.float64)


@dataclass(frozen=True)
class FromRound:
    """lambda = 1[t >= first]: global training, then each group for itself."""

    first: int

    def coefficients(self, round_number: int, layers: Layers) -> NDArray[np.float64]:
        """All 0 or all 1."""
        return np.full(len(layers), float(round_number >= self.first))
