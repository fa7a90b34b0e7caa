"""The training page's values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from device_app.wire.rounds import RoundStatus


@dataclass(frozen=True)
class Contribution:
    """One round this device took part in."""

    round: str
    system: str
    release: str
    state: str
    at: datetime
    sent_bytes: int
    epsilon: float


@dataclass(frozen=True)
class ProtectionFacts:
    """What an upload of this device is protected by, in pure epsilon; coordinates is the size of the update."""

    clip: float
    scale: float
    epsilon_per_coordinate: float
    coordinates: int
    epsilon_per_upload: float


@dataclass(frozen=True)
class TrainingView:
    """The whole training page. why_not says in a sentence why this device would not train now, or is None."""

    switched_on: bool
    paused: bool
    why_not: str | None
    round: RoundStatus | None
    stage: str | None
    protection: ProtectionFacts | None
    contributions: tuple[Contribution, ...]
    release: str | None
