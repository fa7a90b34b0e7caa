"""FedAvg with one gradient per device (FedSGD), then one step of the server's optimizer.

The gradient is G = mean_u G_u.

Source: Uni-FedRec, section 3.5. Every device has the same weight, however much its reader has read, so the mean is over
devices and not over samples. The server adds no noise: the devices did.

Deviation from FedNewsRec and Efficient-FedRec (eqs. 6 and 4), which weight devices by n_u: under local noise the server
would have to see n_u, how much a reader has read, in clear, next to an update whose noise then hides less. A plain mean
needs no n_u, limits every device's influence equally, and has the least noise for a cohort: the standard deviation of
the weighted mean is sqrt(n sum p_u^2) times as large. Weights belong in a secure sum, where n_u is one more summed
number.

`MultiView` is the server's side of FL-MV-DSSM: FedAvg of the shared parameters, with the settings of every view.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import PREFIX, Aggregate, gradient_shapes
from backend.federation.optimizers import Optimizer, Weights
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext, RoundResult
from protocol.rounds import RoundManifest


@dataclass(frozen=True)
class FedAvg:
    """Uses the mean of the updates as the gradient.

    Args:
        follow: the system whose round comes next; None: none.
    """

    follow: str | None = field(default=None, kw_only=True)

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for a gradient for every shared parameter of the system's model."""
        assert system.model is not None
        return Plan(gradient_shapes(context.releases.weights(context.release, system.model)))

    def conclude(
        self, system: FederatedSystem, total: Aggregate, context: RoundContext, manifest: RoundManifest
    ) -> RoundResult:
        """Return the model's new weights and the optimizer's state."""
        assert system.model is not None
        assert system.optimizer is not None
        weights = context.releases.weights(context.release, system.model)
        stepped, memory = system.optimizer.advance(weights, self.gradient(total), context.memory)
        following = None if self.follow is None else replace(context.request, system=self.follow)
        return RoundResult(weights={system.model: stepped}, memory=memory, next=following)

    def gradient(self, total: Aggregate) -> dict[str, NDArray[np.float64]]:
        """Return the gradient by parameter name."""
        return {name.removeprefix(PREFIX): mean for name, mean in total.mean().items()}

    def apply(self, total: Aggregate, weights: Weights, optimizer: Optimizer) -> dict[str, NDArray[np.float32]]:
        """Return only the new weights, for rounds outside a server; `weights` are not modified."""
        return optimizer.step(weights, self.gradient(total))


@dataclass(frozen=True)
class MultiView(FedAvg):
    """FL-MV-DSSM: averages the views' gradients by the round's secure sum.

    That sum is the paper's `remote_secure_aggregate`. The views' settings travel to devices as the round's material
    `views`, an extra file of the round (see `Plan.materials`). Private parameters (SEMI's user towers) are in no
    release and therefore in no plan; shared user towers (one in FL-DSSM, one for each view in FL-MV-DSSM) are trained
    like the item tower. The mean of a view's tower is over all devices, including those without that view, since a sum
    does not reveal which devices have it.

    Args:
        views: which views of a device take part; FL-DSSM has one.
        clip: C of every view's gradient.
        sigma: noise multiplier of every view.
        tower_rate: learning rate of a view's own user tower.
        at_once: |B_v|, how many of a device's views a round draws; None: all, as in the paper's experiments.
    """

    views: tuple[Literal["reading", "searches"], ...] = ("reading", "searches")
    clip: float = 0.5
    sigma: float = 1.0
    tower_rate: float = 0.2
    at_once: int | None = None

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """Ask for FedAvg's gradients, with the material `views`."""
        return replace(super().plan(system, context), materials={"views": context.releases.add_blob(self.terms())})

    def terms(self) -> bytes:
        """Return the material: the settings of the views on every device, as JSON."""
        terms = {"views": self.views, "clip": self.clip, "sigma": self.sigma, "tower_rate": self.tower_rate}
        if self.at_once is not None:
            terms["at_once"] = self.at_once
        return json.dumps(terms, sort_keys=True).encode()
