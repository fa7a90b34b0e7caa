"""FL-MV-DSSM on the server: FedAvg of what is shared, with the terms that every view of a device keeps to."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal

from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.strategy import FederatedSystem, Plan, RoundContext


@dataclass(frozen=True)
class MultiView(FedAvg):
    """remote_secure_aggregate is the round's secure sum; what the views do before it is in a material.

    Private parameters (SEMI's user towers) are in no release, and so in no plan; shared user towers (FL-DSSM's one,
    FL-MV-DSSM's one a view) go the way of the item tower. The mean of a view's tower is over all devices, those without
    that view included, since a sum doesn't tell who has it.

    Args:
        views: which views of a device take part; one is FL-DSSM.
        clip: C of every view's gradient.
        sigma: noise multiplier of every view.
        tower_rate: step of a view's own user tower.
        at_once: |B_v|, how many of a device's views a round draws; None: all, as in the paper's experiments.
    """

    views: tuple[Literal["reading", "searches"], ...] = ("reading", "searches")
    clip: float = 0.5
    sigma: float = 1.0
    tower_rate: float = 0.2
    at_once: int | None = None

    def plan(self, system: FederatedSystem, context: RoundContext) -> Plan:
        """FedAvg's, and the material `views`."""
        return replace(super().plan(system, context), materials={"views": context.releases.add_blob(self.terms())})

    def terms(self) -> bytes:
        """The material: what the views of every device keep to, as JSON."""
        terms = {"views": self.views, "clip": self.clip, "sigma": self.sigma, "tower_rate": self.tower_rate}
        if self.at_once is not None:
            terms["at_once"] = self.at_once
        return json.dumps(terms, sort_keys=True).encode()
