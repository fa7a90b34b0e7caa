"""What devices may declare about their readers under the current release, and what it costs, counted honestly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backend.federation.systems import SYSTEMS
from device_app.wire.protections import LocalLaplace
from device_app.wire.releases import RecallProtocol

if TYPE_CHECKING:
    from backend.composition import Services


@dataclass(frozen=True)
class ReportCost:
    """Pure epsilon of the paper's report (ALGORITHMS 2.6): 2 delta / lambda a score, times B a channel, times C_max."""

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


def report_cost(recall: RecallProtocol) -> ReportCost:
    """The cost of a fresh report; without noise it has no bound.

    Formal guarantees: each score is clipped to [-delta, delta], so changing all clicks moves it by at most 2 delta, and
    gets Laplace(lambda) noise of its own: 2 delta / lambda pure epsilon, adding up over all scores of a session. The
    number of channels and the clicks in each carry no noise and are not covered.
    """
    score = 2 * recall.score_clip / recall.score_noise if recall.score_noise > 0 else math.inf
    return ReportCost(score, score * recall.basis_size, score * recall.basis_size * recall.channels_limit)


def upload_costs(services: Services) -> list[UploadCost]:
    """The cost of an upload for every system with local noise that the current release can train."""
    manifest = services.releases.current_manifest()
    costs = []
    for spec in SYSTEMS.values():
        law = spec.protection
        if manifest is None or spec.model not in manifest.models or not isinstance(law, LocalLaplace):
            continue
        coordinates = sum(array.size for array in services.releases.weights(manifest, spec.model).values())
        costs.append(
            UploadCost(
                spec.name, law.clip, law.scale, coordinates, law.epsilon_per_coordinate(),
                law.epsilon_per_upload(coordinates),
            )
        )  # fmt: skip
    return costs
