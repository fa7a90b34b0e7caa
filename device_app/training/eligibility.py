"""Whether this device may train now and accepts a round's terms: the server proposes, the device disposes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from device_app.errors import BudgetSpent, NotEligible, ProtectionTooWeak
from device_app.privacy.prices import sum_prices
from device_app.privacy.sums_alone import NOTHING_ALONE, SumsAlone
from device_app.settings import PrivacySettings
from device_app.training.tasks.task import Shapes
from device_app.wire.ids import ReleaseId
from device_app.wire.protections import SUMMED, Protection
from device_app.wire.rounds import RoundManifest

ENOUGH_CLICKS = 5
Channel = Literal["training", "counts"]
ROUNDING = 1e-9
"""0.01 / 0.1 is a little less than 0.1 in floating point."""


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
    update it would compute. channel: of the ledger that pays, and epsilon_left in it; alone: what noisy sums have cost
    so far if nobody else in them was real.
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

    @property
    def coordinates(self) -> int:
        """Numbers of the update, which the price counts."""
        return sum(math.prod(shape) for shape in self.shapes.values())


def check_ready(readiness: Readiness) -> None:
    """Raises NotEligible, saying why in a sentence."""
    if not readiness.may_count:
        check_training(readiness)
    if readiness.paused:
        raise NotEligible("its reader has paused training.")
    if readiness.release is None:
        raise NotEligible("it has no release yet.")
    if not readiness.may_count:
        check_budget(readiness)
    if not readiness.idle:
        raise NotEligible("its reader is reading just now.")


def check_task(readiness: Readiness, channel: Channel) -> None:
    """For a task of this channel. Raises NotEligible."""
    if channel == "training":
        check_training(readiness)
        check_budget(readiness)
    elif not readiness.counting:
        raise NotEligible("its reader has switched private counts off.")
    elif not readiness.may_count:
        raise NotEligible("today's privacy budget for counts is spent, or set to 0.")


def check_training(readiness: Readiness) -> None:
    """Raises NotEligible."""
    if not readiness.switched_on:
        raise NotEligible("its reader has not switched training on.")


def check_budget(readiness: Readiness) -> None:
    """Raises NotEligible."""
    if readiness.epsilon_left <= 0:
        raise NotEligible("today's privacy budget for training is spent, or set to 0.")


def check_clicks(readiness: Readiness) -> None:
    """For tasks that need samples. Raises NotEligible."""
    if readiness.clicks < ENOUGH_CLICKS:
        held = "1 click" if readiness.clicks == 1 else f"{readiness.clicks} clicks"
        raise NotEligible(f"it holds {held}; {ENOUGH_CLICKS} are needed.")


def check_offer(manifest: RoundManifest, terms: Terms) -> None:
    """Raises NotEligible, ProtectionTooWeak or BudgetSpent; nothing has been computed or charged by then."""
    if manifest.task not in terms.tasks:
        raise NotEligible(f"it does not know the task {manifest.task!r}.")
    if manifest.release != terms.release:
        raise NotEligible(f"the round is for release {manifest.release}, this device holds {terms.release}.")
    if terms.trainable is not None and manifest.model not in terms.trainable:
        raise NotEligible(f"the release has no gradient of {manifest.model!r} for {manifest.task!r}.")
    if manifest.shapes != dict(terms.shapes):
        raise NotEligible(f"the round wants an update of other tensors than {manifest.task!r} computes.")
    if manifest.closes_at <= terms.now:
        raise NotEligible("the round has closed.")
    check_protection(manifest.protection, terms.privacy)
    cost = (
        _check_sum(manifest, terms)
        if isinstance(manifest.protection, SUMMED)
        else (manifest.protection.epsilon_per_upload(terms.coordinates))
    )
    if cost > terms.epsilon_left * (1 + ROUNDING):
        raise BudgetSpent(terms.channel, cost, terms.epsilon_left)


def check_protection(protection: Protection, privacy: PrivacySettings) -> None:
    """Raises ProtectionTooWeak if the noise is weaker, against the clip, than the reader accepts, or the sum exact."""
    if isinstance(protection, SUMMED):
        if privacy.secure_sum == "never":
            raise ProtectionTooWeak("its reader takes part in no secure sums.")
        if privacy.secure_sum == "noisy" and not protection.sigma:
            raise ProtectionTooWeak("the sum has no noise in it, and its reader takes part in noisy ones only.")
        return
    ratio = protection.scale / protection.clip
    if ratio < privacy.weakest_scale_to_clip * (1 - ROUNDING):
        raise ProtectionTooWeak(
            f"noise of {protection.scale:g} at a clip of {protection.clip:g} is {ratio:.3g} of it; at least "
            f"{privacy.weakest_scale_to_clip:g} is asked for."
        )


def _check_sum(manifest: RoundManifest, terms: Terms) -> float:
    """What the sum costs at worst. Raises ProtectionTooWeak if it hides among too few, or tells more than is allowed.

    The sum's terms must be those that follow from the protection, which is what the price is figured from.
    """
    protection, given = manifest.protection, manifest.terms
    assert isinstance(protection, SUMMED)
    assert given is not None
    if given.cohort_minimum < terms.privacy.smallest_sum:
        raise ProtectionTooWeak(
            f"the sum may be opened with {given.cohort_minimum} devices in it; at least {terms.privacy.smallest_sum} "
            "are asked for."
        )
    asked = terms.privacy.secure_sum_mode
    if given.mode != "active" and (asked == "active" or (asked == "by_cohort" and given.graph == "complete")):
        raise ProtectionTooWeak("the sum has no consistency round, and its reader asks for one.")
    try:
        due = protection.terms(
            manifest.round,
            cohort=given.cohort,
            cohort_minimum=given.cohort_minimum,
            coordinates=terms.coordinates,
        )
    except ValueError as impossible:
        raise ProtectionTooWeak(f"{impossible}.") from impossible
    if given != due:
        raise ProtectionTooWeak("the terms of its sum do not follow from its protection.")
    if not protection.sigma:
        return 0.0
    delta = terms.privacy.delta_per_sum
    prices = sum_prices(protection, given.cohort_minimum, terms.coordinates, delta)
    if not prices.possible:
        raise ProtectionTooWeak(
            f"the noise in its sum comes to epsilon {prices.epsilon:g} at delta {delta:g}, and to {prices.alone:g} if "
            "no other device is real; a sum with noise costs more than 0 and less than infinity."
        )
    if prices.epsilon > terms.privacy.epsilon_per_sum * (1 + ROUNDING):
        raise ProtectionTooWeak(
            f"the opened sum costs epsilon {prices.epsilon:.3g} at delta {delta:g}; at most "
            f"{terms.privacy.epsilon_per_sum:g} is allowed."
        )
    if prices.alone > terms.privacy.epsilon_per_sum_alone * (1 + ROUNDING):
        raise ProtectionTooWeak(
            f"if no other device is real, the opened sum costs epsilon {prices.alone:.3g} at delta {delta:g}; at most "
            f"{terms.privacy.epsilon_per_sum_alone:g} is allowed."
        )
    terms.alone.check(prices.rho_alone, terms.privacy)
    return prices.epsilon
