"""A device's part in a round as a generator without I/O: it yields what it wants done and is sent what came of it.

    look at the rounds -> gather samples -> check in -> compute -> hand in

Whoever drives it does the work, or raises into it what went wrong: errors of the backend and refusals of the ledger end
the attempt with an outcome; anything else ends it with that error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from device_app.errors import (
    AnswerMalformed,
    BackendRefused,
    BackendUnreachable,
    BudgetSpent,
    DeviceError,
    Hindrance,
    NotEligible,
    OfferRefused,
    ProtectionTooWeak,
    RoundTakenOver,
)
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.prose import Prose
from device_app.training.eligibility import (
    Readiness,
    Terms,
    check_clicks,
    check_idle,
    check_offer,
    check_ready,
    check_task,
)
from device_app.wire.ids import PROTOCOL_VERSION, ReleaseId, RoundId, short_release
from device_app.wire.rounds import CheckIn, OpenRounds, RoundOffer, RoundStatus, UploadReceipt

WORDS = Prose("device_app.training", "words.toml")


@dataclass(frozen=True)
class PollRounds:
    """Wanted: the rounds under way, or None; one of them from a server that tells no more."""


MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError)
"""What an offer raises, besides refusals, whose parts don't go together."""


@dataclass(frozen=True)
class AskIfJoined:
    """Wanted: whether this device has had to do with that round before, or may have."""

    round: RoundId
    opened_at: datetime


@dataclass(frozen=True)
class Gather:
    """Wanted: the reader's samples, kept ready; the answer is how many there are."""


@dataclass(frozen=True)
class AskForPlace:
    """Wanted: this check-in sent; the answer is an offer, verified and noted as joined, or None."""

    message: CheckIn


@dataclass(frozen=True)
class StateTerms:
    """Wanted: what this device holds the offer against, now."""

    offer: RoundOffer


@dataclass(frozen=True)
class Compute:
    """Wanted: the update."""

    offer: RoundOffer


@dataclass(frozen=True)
class HandIn:
    """Wanted: the update clipped, made noisy, paid for, kept, and sent; the answer is the receipt."""

    offer: RoundOffer
    update: ComputedUpdate


@dataclass(frozen=True)
class JoinSecAgg:
    """Wanted: keys for the secure sum of this round, kept; `training.secagg_client` goes on with it from there."""

    offer: RoundOffer


Effect = JoinSecAgg | PollRounds | AskIfJoined | Gather | AskForPlace | StateTerms | Compute | HandIn
Reply = OpenRounds | RoundStatus | RoundOffer | Terms | ComputedUpdate | UploadReceipt | bool | int | None


@dataclass(frozen=True)
class Outcome:
    """How a step ended.

    idle: nothing to do, or not eligible; declined: an offer was refused by this device; waiting: the update is paid for
    and kept, and will be sent again, or the stage of a secure sum isn't closed; uploaded: it arrived; failed: the
    server refused it; not needed: the round was complete before. why is a sentence; again_sec: when to try again, where
    that isn't the usual time. hindrance: the same as why, of every round that isn't among `hindrances`, by round.
    Neither leaves the device.
    """

    state: Literal["idle", "declined", "waiting", "uploaded", "failed", "not needed"]
    why: str | None = None
    offer: RoundOffer | None = None
    again_sec: float | None = None
    hindrance: Hindrance | None = None
    hindrances: Mapping[str, Hindrance] = field(default_factory=dict)


def participate(
    readiness: Readiness,
    tasks: tuple[str, ...],
    without_samples: Collection[str] = (),
    counts: Collection[str] = (),
    without_release: Collection[str] = (),
) -> Generator[Effect, Reply, Outcome]:
    """One attempt to take part in a round: of several under way, the oldest that takes this device.

    One whose task is among `without_release` is for devices of any release. A device whose reader has too few clicks
    for samples looks only for rounds of the tasks `without_samples`, and one whose reader allows either training or
    private counts, the tasks `counts`, for rounds of these. What it says at the check-in is the same: what this program
    can do, the round, and nothing of its reader.
    """
    try:
        check_ready(readiness)
        if not without_samples:
            check_clicks(readiness)
        found = yield PollRounds()
    except NotEligible as not_now:
        return Outcome("idle", str(not_now), hindrance=not_now.hindrance)
    except (BackendUnreachable, BackendRefused, AnswerMalformed) as trouble:
        return _not_now(trouble)
    assert found is None or isinstance(found, OpenRounds | RoundStatus)
    rounds = found.rounds if isinstance(found, OpenRounds) else () if found is None else (found,)
    why_not, hindrances = [], dict[str, Hindrance]()
    for status in rounds:
        try:
            _check_round(status, None if status.task in without_release else readiness.release)
            if (yield AskIfJoined(status.round, status.opened_at)):
                why_not.append(WORDS("had_its_part", round=status.round))
                continue
            check_idle(readiness)
            check_task(readiness, "counts" if status.task in counts else "training")
            if status.task not in without_samples:
                check_clicks(readiness)
                if not (yield Gather()):
                    raise NotEligible(WORDS("nothing_to_learn_from"), "few")
        except NotEligible as not_now:
            why_not.append(str(not_now))
            hindrances[status.round] = not_now.hindrance
            continue
        # Of a round that reads no release the round's own is repeated, the same from every device: whatever a server
        # names there, no check-in tells which one this device holds.
        message = CheckIn(
            protocol=PROTOCOL_VERSION,
            release=short_release(status.release),
            tasks=tasks,
            round=status.round if isinstance(found, OpenRounds) else None,
        )
        outcome = yield from _take_part(message)
        if outcome.hindrance is not None:
            hindrances[status.round] = outcome.hindrance
        if outcome.why != WORDS("no_place"):
            return replace(outcome, hindrance=None, hindrances=hindrances)
        why_not.append(WORDS("no_place"))
    return Outcome("idle", why_not[0] if why_not else WORDS("no_round"), hindrances=hindrances)


def _take_part(message: CheckIn) -> Generator[Effect, Reply, Outcome]:
    """message: asks for a place; of a server that doesn't know devices to say a round, for one in the oldest."""
    try:
        offer = yield AskForPlace(message)
    except (BackendUnreachable, BackendRefused, AnswerMalformed) as trouble:
        return _not_now(trouble)
    except RoundTakenOver as elsewhere:
        return Outcome("idle", str(elsewhere))
    except OfferRefused as refusal:
        return Outcome("declined", str(refusal), hindrance=hindrance_of(refusal))
    if offer is None:
        return Outcome("idle", WORDS("no_place"), hindrance="full")
    assert isinstance(offer, RoundOffer)
    try:
        terms = yield StateTerms(offer)
        assert isinstance(terms, Terms)
        _check_offer(offer, terms)
        if offer.manifest.terms is not None:
            yield JoinSecAgg(offer)
            return Outcome("waiting", WORDS("joined"), offer)
        update = yield Compute(offer)
        assert isinstance(update, ComputedUpdate)
        yield HandIn(offer, update)
    except RoundTakenOver as elsewhere:
        return Outcome("idle", str(elsewhere))
    except (NotEligible, ProtectionTooWeak, BudgetSpent) as refusal:
        return Outcome("declined", str(refusal), offer, hindrance=hindrance_of(refusal))
    except (BackendUnreachable, AnswerMalformed) as trouble:
        return Outcome("waiting", str(trouble), offer)
    except BackendRefused as refusal:
        if is_complete(refusal):
            return Outcome("not needed", str(refusal), offer, hindrance="full")
        if may_pass(refusal):
            return Outcome("waiting", str(refusal), offer)
        return Outcome("failed", str(refusal), offer, hindrance=hindrance_of(refusal))
    return Outcome("uploaded", None, offer)


def _check_offer(offer: RoundOffer, terms: Terms) -> None:
    """As `check_offer`; what an offer is that can't even be checked is declined, too. Raises NotEligible then."""
    try:
        check_offer(offer.manifest, terms)
    except MALFORMED as malformed:
        raise NotEligible(f"the offer is malformed: {type(malformed).__name__}: {malformed}.") from malformed


def drive(attempt: Generator[Effect, Reply, Outcome], fulfil: Callable[[Effect], Reply]) -> Outcome:
    """Run an attempt to its end; what goes wrong with an effect is raised where it was asked for."""
    try:
        effect = next(attempt)
        while True:
            try:
                reply = fulfil(effect)
            except DeviceError as trouble:
                effect = attempt.throw(trouble)
            else:
                effect = attempt.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def may_pass(refusal: BackendRefused) -> bool:
    """Whether the same request may succeed later: the server's trouble, and not this device's."""
    return refusal.problem.status >= 500


def hindrance_of(trouble: Exception | str | None) -> Hindrance:
    """What kept a device out of a round, by what was raised."""
    match trouble:
        case NotEligible(hindrance=hindrance):
            return hindrance
        case BudgetSpent():
            return "spent"
        case ProtectionTooWeak():
            return "protection"
        case BackendRefused() if trouble.problem.type.endswith(("round-closed", "sum-stage-closed")):
            return "late"
        case BackendUnreachable() | BackendRefused() | AnswerMalformed():
            return "unreachable"
        case _:
            return "unfit"


def is_complete(refusal: BackendRefused) -> bool:
    """Whether others were quicker: more devices are asked than are needed, since some always vanish."""
    return refusal.problem.type.endswith("round-closed") and refusal.problem.field == "cohort"


def _not_now(trouble: BackendUnreachable | BackendRefused | AnswerMalformed) -> Outcome:
    """Nothing was joined; asked again when the backend says, where it does."""
    again_sec = trouble.retry_after_sec if isinstance(trouble, BackendRefused) and may_pass(trouble) else None
    return Outcome("idle", str(trouble), again_sec=again_sec, hindrance="unreachable")


def _check_round(status: RoundStatus, release: ReleaseId | None) -> None:
    """release: the one in use, None where the round's task reads none. Raises NotEligible."""
    if status.state not in ("open", "updates", "keys"):
        raise NotEligible(f"{status.round} is {status.state}.", "late")
    if release is not None and status.release != release:
        raise NotEligible(f"{status.round} is for release {status.release}, this device holds {release}.", "old")
    if status.uploaded >= status.cohort:
        raise NotEligible(f"{status.round} has all its updates.", "full")
