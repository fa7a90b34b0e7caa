"""FedAvg with one gradient a device (FedSGD): G = mean_u G_u, then one step of the server's optimizer.

ALGORITHMS 2.5. Every device counts the same, whatever it has read, so the mean is over devices and not over samples.
The server adds no noise: the devices did.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.federation.aggregate import Aggregate
from backend.federation.optimizers import Optimizer, Weights


@dataclass(frozen=True)
class FedAvg:
    """The mean of the updates is the gradient."""

    def apply(self, total: Aggregate, weights: Weights, optimizer: Optimizer) -> dict[str, NDArray[np.float32]]:
        """The new weights."""
        return optimizer.step(weights, total.mean())
