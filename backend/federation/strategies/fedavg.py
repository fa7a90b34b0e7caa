"""FedAvg with one gradient a device (FedSGD): G = mean_u G_u, then one step of the server's optimizer.

ALGORITHMS 2.5. Every device counts the same, whatever it has read, so the mean is over devices and not over samples.
The server adds no noise: the devices did.

Deviation from FedNewsRec and Efficient-FedRec (ALGORITHMS 3.2, 4.2), which weigh devices by n_u: under local noise the
server would have to see n_u, how much a reader has read, in clear beside an update whose noise hides less. A plain mean
asks for nothing, bounds everybody's pull alike, and has the least noise for a cohort: the weighted mean's standard
deviation is sqrt(n sum p_u^2) times as large. Weights belong into a secure sum, where n_u is one more summed item.
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
