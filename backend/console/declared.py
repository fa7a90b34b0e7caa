"""What devices may reveal about their readers under the current release, and its cost in epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backend.federation.protections.registry import resolve
from backend.federation.strategies.strategy import TrainsBesides
from backend.federation.systems import PRESETS, STEPS, SYSTEMS
from backend.federation.systems.system import SystemSpec
from protocol.concentrated import epsilon_of
from protocol.releases import RecallProtocol

if TYPE_CHECKING:
    from backend.composition import Services

SURVIVORS = (10, 30, 60, 200)
"""Cohort sizes for which the cost of a noisy sum is shown."""
COORDINATES = 1_000_000
"""More than any update has, so that the shown cost is an upper bound."""


@dataclass(frozen=True)
class ReportCost:
    """Pure epsilon of Uni-FedRec's report, by the Laplace mechanism: 2 delta / lambda per score, times B, times
    C_max."""

    score: float
    channel: float
    session: float


@dataclass(frozen=True)
class UploadCost:
    """Pure epsilon of one training upload of a system."""

    system: str
    clip: float
    scale: float
    coordinates: int
    coordinate: float
    upload: float


@dataclass(frozen=True)
class DeclaredSumCost:
    """Cost of an opened sum to a device in it, for each of SURVIVORS; epsilons is empty if the sum is exact."""

    system: str
    epsilons: tuple[float, ...]
    delta: float


def declared_systems() -> list[SystemSpec]:
    """Every system under each of its protections, every preset and every step; aggregation doesn't affect the cost."""
    composed = [system.compose(protection) for system in SYSTEMS.values() for protection in system.forms]
    return [*composed, *PRESETS.values(), *STEPS.values()]


def report_cost(recall: RecallProtocol) -> ReportCost:
    """The cost of a new report; infinite without noise.

    Formal guarantees: each score is clipped to [-delta, delta], so changing all clicks moves it by at most 2 delta, and
    gets independent Laplace(lambda) noise: 2 delta / lambda pure epsilon, adding up over all scores of a session. The
    number of channels and the clicks in each have no noise and are not covered.
    """
    score = 2 * recall.score_clip / recall.score_noise if recall.score_noise > 0 else math.inf
    return ReportCost(score, score * recall.basis_size, score * recall.basis_size * recall.channels_limit)


def upload_costs(services: Services) -> list[UploadCost]:
    """The cost of an upload for every system with local noise that the current release can train."""
    manifest = services.releases.current_manifest()
    costs = []
    for spec in declared_systems():
        if manifest is None or spec.model not in manifest.models or resolve(spec.protection).summed:
            continue
        strategy = spec.strategy
        besides = strategy.numbers_besides(services.settings.data_dir) if isinstance(strategy, TrainsBesides) else 0
        if besides is None:
            continue
        coordinates = besides + sum(array.size for array in services.releases.weights(manifest, spec.model).values())
        local = resolve(spec.protection).account(coordinates, None).local
        if local is not None:
            costs.append(UploadCost(spec.name, local.clip, local.scale, coordinates, local.coordinate, local.upload))
    return costs


def sum_costs() -> list[DeclaredSumCost]:
    """The cost of every system whose updates are masked.

    Formal guarantees: the opened sum contains each survivor's share of discrete Gaussian noise. The cost is that of the
    whole vector in zero-concentrated differential privacy, converted to an epsilon at delta (`SecureSum.epsilon`). The
    vector's number of coordinates changes it by less than the digits shown. An exact sum has no epsilon.
    """
    costs = []
    for spec in declared_systems():
        protection = resolve(spec.protection)
        if protection.delta is not None:
            rhos = [protection.account(COORDINATES, survivors).rho for survivors in SURVIVORS]
            epsilons = tuple(epsilon_of(rho, protection.delta) for rho in rhos if rho is not None)
            costs.append(DeclaredSumCost(spec.name, epsilons, protection.delta))
    return costs
