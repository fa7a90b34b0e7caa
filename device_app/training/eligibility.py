"""Decides whether this device may train now, and whether it accepts a round's terms.

`ReaderConsent` decides the first from settings, a pause and budgets; `check_offer` checks the terms that a server
proposes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from device_app.errors import BudgetSpent, NotEligible
from device_app.privacy.accounting.cost_of_sums import NOTHING_ALONE, OneClick, SumsAlone
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.protections.protection import ROUNDING
from device_app.privacy.protections.registry import resolve
from device_app.settings import PrivacySettings
from device_app.training.tasks import TASKS
from device_app.training.tasks.task import Shapes
from protocol.ids import ReleaseId
from protocol.rounds import RoundManifest


class ReaderConsent:
    """What the reader allows.

    It is checked again at every step, since the reader may change a setting at any time.

    Args:
        ledger: the budget.
        privacy: returns what the reader accepts now.
        paused: whether the reader has paused training.
    """

    def __init__(
        self, ledger: Ledger, privacy: Callable[[], PrivacySettings], *, paused: Callable[[], bool] = lambda: False
    ) -> None:
        self.ledger, self.privacy, self.paused = ledger, privacy, paused

    def readiness(self, release: ReleaseId | None) -> Readiness:
        """Return what is known before any request, on a device with this release."""
        settings = self.privacy()
        return Readiness(
            switched_on=settings.training,
            paused=self.paused(),
            release=release,
            epsilon_left=self.ledger.left("training"),
            counting=settings.counting,
            counts_left=self.ledger.left("counts"),
        )

    def switched_on(self, task: str) -> bool:
        """Return whether the reader allows this task, regardless of a pause."""
        kind = TASKS.get(task)
        return switched_on(self.privacy(), "training" if kind is None else kind.channel)

    def check(self, task: str) -> None:
        """Raise NotEligible if the reader has withdrawn permission.

        Call it last just before the charge.
        """
        if self.paused() or not self.switched_on(task):
            raise NotEligible("training has since been paused or switched off.", "off")


MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError)
"""Errors, besides refusals, raised by an offer whose parts are inconsistent."""
LONGEST_ROUND = timedelta(days=8)
"""Longest accepted round; a server opens none of more than seven days."""
Channel = Literal["training", "counts"]


@dataclass(frozen=True)
class Readiness:
    """What is known before any request, which decides whether to poll for a round at all.

    It depends on settings and the ledger, but not on what the reader does: otherwise the time at which a device joins
    would reveal it. switched_on and epsilon_left are for training; counting and counts_left for private counts.
    """

    switched_on: bool
    paused: bool
    release: ReleaseId | None
    epsilon_left: float
    counting: bool = False
    counts_left: float = 0.0

    @property
    def may_count(self) -> bool:
        """Whether the reader's settings allow joining a private count."""
        return self.counting and self.counts_left > 0


@dataclass(frozen=True)
class Terms:
    """What this device compares an offer with.

    trainable: the models on which it can run the offered task; None for a task that is not tied to a model. shapes:
    those of the update that it would compute. one_click: how far replacing one click moves it; None: as far as
    replacing all. channel: the ledger's channel that is charged, and epsilon_left in it. alone: what noisy sums have
    cost so far if every other device was fake. reads_release: whether the task uses the release; if not, the round may
    be for another one.
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
        """The number of coordinates of the update, which its cost depends on."""
        return sum(math.prod(shape) for shape in self.shapes.values())


def check_ready(readiness: Readiness) -> None:
    """Raise NotEligible with the reason in a sentence."""
    if not readiness.may_count:
        check_training(readiness)
    if readiness.paused:
        raise NotEligible("training is paused.", "off")
    if readiness.release is None:
        raise NotEligible("it has no release yet.", "old")
    if not readiness.may_count:
        check_budget(readiness)


def check_task(readiness: Readiness, channel: Channel) -> None:
    """Raise NotEligible unless the device may run a task of this channel."""
    if channel == "training":
        check_training(readiness)
        check_budget(readiness)
    elif not readiness.counting:
        raise NotEligible("anonymous counts are switched off.", "off")
    elif not readiness.may_count:
        raise NotEligible("today's limit for counts is reached, or set to 0.", "spent")


def switched_on(privacy: PrivacySettings, channel: str) -> bool:
    """Return whether the reader allows the kind of task that this ledger channel is for."""
    return privacy.counting if channel == "counts" else privacy.training


def check_training(readiness: Readiness) -> None:
    """Raise NotEligible unless training is allowed."""
    if not readiness.switched_on:
        raise NotEligible("training is not switched on.", "off")


def check_budget(readiness: Readiness) -> None:
    """Raise NotEligible if the budget is spent."""
    if readiness.epsilon_left <= 0:
        raise NotEligible("today's limit for training is reached, or set to 0.", "spent")


def check_offer(manifest: RoundManifest, terms: Terms) -> None:
    """Raise NotEligible, ProtectionTooWeak or BudgetSpent for terms that this device doesn't accept.

    Call it before anything is computed or charged.
    """
    if manifest.task not in terms.tasks:
        raise NotEligible(f"it does not know the task {manifest.task!r}.", "old")
    if terms.reads_release and manifest.release != terms.release:
        raise NotEligible(f"the round is for release {manifest.release}, this device has {terms.release}.", "old")
    if terms.trainable is not None and manifest.model not in terms.trainable:
        raise NotEligible(f"the release has no gradient of {manifest.model!r} for {manifest.task!r}.")
    if manifest.shapes != dict(terms.shapes):
        raise NotEligible(f"the round requests tensors that {manifest.task!r} does not compute.")
    if manifest.closes_at <= terms.now:
        raise NotEligible("the round has closed.", "late")
    if manifest.closes_at > terms.now + LONGEST_ROUND:
        raise NotEligible(
            f"the round would go on until {manifest.closes_at:%Y-%m-%d %H:%M}, more than a week from now."
        )
    protection = resolve(manifest.protection)
    protection.check(terms.privacy)
    cost = protection.price(manifest, terms.coordinates, terms.privacy, terms.alone, terms.one_click)
    if cost > terms.epsilon_left * (1 + ROUNDING):
        raise BudgetSpent(terms.channel, cost, terms.epsilon_left)
