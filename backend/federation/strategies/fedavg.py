"""FedAvg with one gradient a device (FedSGD): G = mean_u G_u, then one step of the server's optimizer.

Uni-FedRec, section 3.5. Every device counts the same, whatever it has read, so the mean is over devices, not samples.
The server adds no noise: the devices did.

Deviation from FedNewsRec and Efficient-FedRec (eqs. 6 and 4), which weigh devices by n_u: under local noise the
server would have to see n_u, how much a reader has read, in clear beside an update whose noise hides less. A plain mean
asks for nothing, bounds everybody's pull alike, and has the least noise for a cohort: the weighted mean's standard
deviation is sqrt(n sum p_u^2) times as large. Weights belong into a secure sum, where n_u is one more summed item.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import PREFIX, Aggregate, gradient_shapes
from backend.federation.optimizers import Optimizer, Weights
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from device_app.wire.rounds import RoundManifest


@dataclass(frozen=True)
class FedAvg:
    """The mean of the updates is the gradient."""

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """A gradient for every shared parameter of the system's model."""
        assert system.model is not None
        return Plan(gradient_shapes(context.releases.weights(context.release, system.model)))

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """The model's new weights, and the optimizer's memory."""
        assert system.model is not None
        assert system.optimizer is not None
        weights = context.releases.weights(context.release, system.model)
        stepped, memory = system.optimizer.advance(weights, self.gradient(total), context.memory)
        return RoundResult(weights={system.model: stepped}, memory=memory)

    def gradient(self, total: Aggregate) -> dict[str, NDArray[np.float64]]:
        """By parameter name."""
        return {name.removeprefix(PREFIX): mean for name, mean in total.mean().items()}

    def apply(self, total: Aggregate, weights: Weights, optimizer: Optimizer) -> dict[str, NDArray[np.float32]]:
        """The new weights alone, for rounds outside a server; `weights` stay untouched."""
        return optimizer.step(weights, self.gradient(total))
