"""Whether this device may train now and accepts a round's terms: the server proposes, the device disposes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from device_app.errors import BudgetSpent, NotEligible
from device_app.privacy.prices import OneClick
from device_app.privacy.protections.protection import ROUNDING
from device_app.privacy.protections.registry import resolve
from device_app.privacy.worst_case_sums import NOTHING_ALONE, SumsAlone
from device_app.settings import PrivacySettings
from device_app.training.tasks.task import Shapes
from device_app.wire.ids import ReleaseId
from device_app.wire.rounds import RoundManifest

LONGEST_ROUND = timedelta(days=8)
"""A server opens none of more than seven days."""
ENOUGH_CLICKS = 5
Channel = Literal["training", "counts"]


@dataclass(frozen=True)
class Readiness:
    """What is known before any request: whether to look for a round at all.

    switched_on and epsilon_left are of training; counting and counts_left of private counts.
    """

    switched_on: bool
    paused: bool
    release: ReleaseId | None
    clicks: int
    epsilon_left: float
    idle: bool = True
    counting: bool = False
    counts_left: float = 0.0

    @property
    def may_count(self) -> bool:
        """Whether a private count could be joined, as far as the reader's settings go."""
        return self.counting and self.counts_left > 0


@dataclass(frozen=True)
class Terms:
    """What this device holds an offer against.

    trainable: the models that it can do the offered task on; None for a task of no particular model. shapes: of the
    update it would compute, and one_click: how far one click moves it, None for as far as all of them. channel: of the
    ledger that pays, and epsilon_left in it; alone: what noisy sums have cost so far if nobody else in them was real.
    reads_release: whether the task reads anything of the release; if not, the round may be for another one.
    """

    privacy: PrivacySettings
    release: ReleaseId
    tasks: tuple[str, ...]
    trainable: tuple[str, ...] | None
    shapes: Shapes
    epsilon_left: float
    now: datetime
    channel: Channel = "training"
    alone: SumsAlone = NOTHING_ALONE
    one_click: OneClick | None = None
    reads_release: bool = True

    @property
    def coordinates(self) -> int:
        """Numbers of the update, which the price counts."""
        return sum(math.prod(shape) for shape in self.shapes.values())


def check_ready(readiness: Readiness) -> None:
    """Raises NotEligible, saying why in a sentence."""
    if not readiness.may_count:
        check_training(readiness)
    if readiness.paused:
        raise NotEligible("its reader has paused training.", "off")
    if readiness.release is None:
        raise NotEligible("it has no release yet.", "old")
    if not readiness.may_count:
        check_budget(readiness)


def check_idle(readiness: Readiness) -> None:
    """Raises NotEligible while the reader reads. Asked once a round is under way: polls that fell out would tell when
    somebody reads."""
    if not readiness.idle:
        raise NotEligible("its reader is reading just now.", "busy")


def check_task(readiness: Readiness, channel: Channel) -> None:
    """For a task of this channel. Raises NotEligible."""
    if channel == "training":
        check_training(readiness)
        check_budget(readiness)
    elif not readiness.counting:
        raise NotEligible("its reader has switched private counts off.", "off")
    elif not readiness.may_count:
        raise NotEligible("today's privacy budget for counts is spent, or set to 0.", "spent")


def switched_on(privacy: PrivacySettings, channel: str) -> bool:
    """Whether the reader lets a device take part in what this channel of the ledger pays for."""
    return privacy.counting if channel == "counts" else privacy.training


def check_training(readiness: Readiness) -> None:
    """Raises NotEligible."""
    if not readiness.switched_on:
        raise NotEligible("its reader has not switched training on.", "off")


def check_budget(readiness: Readiness) -> None:
    """Raises NotEligible."""
    if readiness.epsilon_left <= 0:
        raise NotEligible("today's privacy budget for training is spent, or set to 0.", "spent")


def check_clicks(readiness: Readiness) -> None:
    """For tasks that need samples. Raises NotEligible."""
    if readiness.clicks < ENOUGH_CLICKS:
        held = "1 click" if readiness.clicks == 1 else f"{readiness.clicks} clicks"
        raise NotEligible(f"it holds {held}; {ENOUGH_CLICKS} are needed.", "few")


def check_offer(manifest: RoundManifest, terms: Terms) -> None:
    """Raises NotEligible, ProtectionTooWeak or BudgetSpent; nothing has been computed or charged by then."""
    if manifest.task not in terms.tasks:
        raise NotEligible(f"it does not know the task {manifest.task!r}.", "old")
    if terms.reads_release and manifest.release != terms.release:
        raise NotEligible(f"the round is for release {manifest.release}, this device holds {terms.release}.", "old")
    if terms.trainable is not None and manifest.model not in terms.trainable:
        raise NotEligible(f"the release has no gradient of {manifest.model!r} for {manifest.task!r}.")
    if manifest.shapes != dict(terms.shapes):
        raise NotEligible(f"the round wants an update of other tensors than {manifest.task!r} computes.")
    if manifest.closes_at <= terms.now:
        raise NotEligible("the round has closed.", "late")
    if manifest.closes_at > terms.now + LONGEST_ROUND:
        raise NotEligible(f"the round would go on until {manifest.closes_at:%Y-%m-%d %H:%M}, over a week from now.")
    protection = resolve(manifest.protection)
    protection.check(terms.privacy)
    cost = protection.price(manifest, terms.coordinates, terms.privacy, terms.alone, terms.one_click)
    if cost > terms.epsilon_left * (1 + ROUNDING):
        raise BudgetSpent(terms.channel, cost, terms.epsilon_left)
