"""The server half of a system."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.federation.aggregate import Aggregate
from backend.federation.optimizers import Optimizer, Weights


class Strategy(Protocol):
    """Turns what a cohort sent into new weights."""

    def apply(self, total: Aggregate, weights: Weights, optimizer: Optimizer) -> dict[str, NDArray[np.float32]]:
        """The new weights, by parameter name; `weights` stay untouched."""
        ...
