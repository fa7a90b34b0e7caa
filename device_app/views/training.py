"""The training page's values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from device_app.errors import DeviceError
from device_app.store.participations import Participation, Participations
from device_app.sync.release import Release
from device_app.training.trainer import Trainer
from device_app.wire.protections import LocalLaplace
from device_app.wire.rounds import RoundStatus

WAITING = (None, "looking", "gathering")


@dataclass(frozen=True)
class Contribution:
    """One round this device took part in; detail says why it was declined or failed."""

    round: str
    system: str
    release: str
    state: str
    at: datetime
    sent_bytes: int
    epsilon: float
    detail: str | None = None


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
    """The whole training page. why_not says in a sentence why this device would not train now, or is None.

    stage: what this device does for the round under way, or how its part in it stands; None if it has none.
    """

    switched_on: bool
    paused: bool
    why_not: str | None
    round: RoundStatus | None
    stage: str | None
    protection: ProtectionFacts | None
    contributions: tuple[Contribution, ...]
    release: str | None


def training_view(
    trainer: Trainer,
    participations: Participations,
    release: Release | None,
    status: RoundStatus | None,
    *,
    switched_on: bool,
    paused: bool,
) -> TrainingView:
    """The training page; status is the round under way as it was last seen."""
    kept = participations.list()
    return TrainingView(
        switched_on=switched_on,
        paused=paused,
        why_not=trainer.why_not(),
        round=status,
        stage=_stage(
            trainer.stage, next((_words(mine) for mine in kept if status and mine.round == status.round), None)
        ),
        protection=None if release is None else protection_facts(release),
        contributions=tuple(
            Contribution(
                round=mine.round,
                system=mine.system,
                release=mine.release,
                state=mine.state,
                at=mine.changed_at,
                sent_bytes=mine.sent_bytes,
                epsilon=mine.epsilon,
                detail=mine.detail,
            )
            for mine in kept
        ),
        release=None if release is None else release.id,
    )


def _stage(now: str | None, state: str | None) -> str | None:
    """What the trainer does now, unless it only waits while its part in the round is already known."""
    return state if state is not None and now in WAITING else now


def _words(mine: Participation) -> str:
    """How this device's part stands; in a secure sum, what it has sent and waits for."""
    return mine.detail if mine.state == "summing" and mine.detail else mine.state


def protection_facts(release: Release) -> ProtectionFacts | None:
    """What an upload for the recall task costs at the paper's noise; None for a release that is damaged."""
    try:
        coordinates = sum(int(np.size(value)) for value in release.weights("recall").values())
    except DeviceError:
        return None
    noise = LocalLaplace()
    return ProtectionFacts(
        clip=noise.clip,
        scale=noise.scale,
        epsilon_per_coordinate=noise.epsilon_per_coordinate(),
        coordinates=coordinates,
        epsilon_per_upload=noise.epsilon_per_upload(coordinates),
    )
