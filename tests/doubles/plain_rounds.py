"""A coordinator as in a server process, and devices that upload plain updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from backend.federation.rounds.coordinator import Coordinator
from backend.federation.systems import COMPOSED
from backend.releases.store import ReleaseStore
from protocol.ids import PROTOCOL_VERSION
from protocol.rounds import CheckIn, RoundOffer
from protocol.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.small_release import WEIGHTS

CHECK_IN = CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("recall",))


@dataclass
class PlainRoundRig:
    folder: Path
    engine: Engine
    releases: ReleaseStore
    clock: StillClock = field(default_factory=StillClock)

    def coordinator(self) -> Coordinator:
        """Return a coordinator as a freshly started process has it."""
        return Coordinator(self.engine, self.releases, COMPOSED, self.folder, self.clock)


def update(value: float) -> dict[str, NDArray[np.float32]]:
    return {f"g.{name}": np.full_like(weights, value) for name, weights in WEIGHTS.items()}


def open_round(coordinator: Coordinator, *, cohort: int = 3, minimum: int = 2, seconds: float = 60.0) -> None:
    coordinator.open_round("uni_fedrec", cohort=cohort, cohort_minimum=minimum, seconds=seconds)


def joined(coordinator: Coordinator) -> RoundOffer:
    offer = coordinator.check_in(CHECK_IN)
    assert offer is not None
    return offer


def upload_update(coordinator: Coordinator, value: float) -> RoundOffer:
    offer = joined(coordinator)
    coordinator.plain.accept("round-1", offer.pseudonym, pack(update(value)))
    return offer
