"""FL-MV-DSSM on the server: FedAvg of the item tower, with the terms that every view of a device keeps to."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backend.federation.strategies.fedavg import FedAvg
from backend.federation.strategies.strategy import Plan, Stock

if TYPE_CHECKING:
    from backend.federation.systems.system import SystemSpec


@dataclass(frozen=True)
class MultiView(FedAvg):
    """remote_secure_aggregate is the round's secure sum; what the views do before it is in a material.

    Private parameters (SEMI's user towers) are in no release, and so in no plan.

    Args:
        clip: C of every view's gradient.
        sigma: noise multiplier of every view.
        tower_rate: step of a view's own user tower.
    """

    clip: float = 0.5
    sigma: float = 1.0
    tower_rate: float = 0.2

    def plan(self, spec: SystemSpec, stock: Stock) -> Plan:
        """FedAvg's, and the material `views`."""
        terms = {"clip": self.clip, "sigma": self.sigma, "tower_rate": self.tower_rate}
        blob = json.dumps(terms, sort_keys=True).encode()
        return replace(super().plan(spec, stock), materials={"views": stock.releases.add_blob(blob)})
