"""A whole system as one frozen value: no flags, no branches."""

from __future__ import annotations

from dataclasses import dataclass

from backend.federation.optimizers import Optimizer
from backend.federation.strategies.strategy import Strategy
from device_app.wire.protections import Protection


@dataclass(frozen=True)
class SystemSpec:
    """Everything that makes a system: each name is resolved in one dict, here or on the device.

    Args:
        name: what rounds, pages and the command call it.
        architecture: of the model that is trained (ModelEntry.architecture).
        model: key of that model in ReleaseManifest.models.
        task: what a device computes.
        protection: what a device does to its update before it leaves.
        strategy: how updates become new weights.
        optimizer: the server's step.
        grouping: how devices are grouped; None for one group.
        negatives: K, sampled by the device for each positive.
        samples_limit: most samples of one device in one round.
        over_selection: offers for each wanted update. Above 1 a round survives vanished devices, but an update that
            comes after the cohort is complete has cost its reader privacy for nothing; the deadline is the kinder way.
    """

    name: str
    architecture: str
    model: str
    task: str
    protection: Protection
    strategy: Strategy
    optimizer: Optimizer
    grouping: None
    negatives: int
    samples_limit: int
    over_selection: float = 1.0
