"""A device's part in a round, top to bottom: take part -> compute -> send.

`participate` and `finish`, or `secagg_client` in a secure sum, define the order of the steps; a `RoundWork` carries
them out. Errors of the backend and refusals are outcomes; anything else is a fault of this device or of the release.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from device_app.errors import (
    AnswerMalformed,
    BackendRefused,
    BackendUnreachable,
    BudgetSpent,
    Hindrance,
    NotEligible,
    OfferRefused,
    ProtectionTooWeak,
    RoundTakenOver,
)
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.training.eligibility import Readiness, check_ready, check_task
from device_app.training.tasks import TASKS
from protocol.ids import PROTOCOL_VERSION, ReleaseId, short_release
from protocol.rounds import CheckIn, RoundOffer, RoundStatus, SignedOffer, UploadReceipt
from protocol.text_catalogue import TextCatalogue

WORDS = TextCatalogue("device_app.training", "words.toml")
AGAIN_SEC = 1.0
"""Mean seconds to the next step of a device that has a part in a round."""


class RoundWork(Protocol):
    """What a device does in a round, in this order."""

    def poll_rounds(self) -> tuple[RoundStatus, ...]:
        """Return the running rounds, oldest first. Raises the backend's errors."""

    def may_have_part(self, status: RoundStatus) -> bool:
        """Return whether this device has, or may have, taken part in that round."""

    def ask_for_place(self, message: CheckIn) -> RoundOffer | None:
        """Send the check-in and return the offer, or None without a place.

        The offer is verified and recorded as joined.

        Raises the backend's errors, OfferRefused and RoundTakenOver.
        """

    def check_offer(self, offer: RoundOffer) -> None:
        """Raise unless this device accepts the offer.

        The errors are NotEligible, ProtectionTooWeak and BudgetSpent.
        """

    def join(self, offer: RoundOffer) -> None:
        """Draw when the update is due; for a secure sum, make and store keys.

        Raises what `check_wanted` raises.
        """

    def check_wanted(self, task: str) -> None:
        """Raise NotEligible if the reader doesn't currently allow this task."""

    def check_signer(self, signed: SignedOffer) -> object:
        """Raise OfferRefused unless the key that this device trusts now has signed the offer."""

    def update(self, offer: RoundOffer) -> ComputedUpdate | None:
        """Return the update, or None before it is due.

        Raises what `check_offer` raises, since settings may have changed.
        """

    def send(self, offer: RoundOffer, update: ComputedUpdate) -> UploadReceipt:
        """Clip the update, add noise, charge, store and send it.

        Raises NotEligible, ProtectionTooWeak, BudgetSpent, RoundTakenOver and the backend's errors.
        """


OutcomeState = Literal["idle", "declined", "waiting", "uploaded", "failed", "not needed"]


@dataclass(frozen=True)
class Outcome:
    """How a step ended.

    idle: nothing to do, or not eligible; declined: an offer was refused by this device; waiting: the update isn't due
    yet, or it is paid for and will be sent again, or the stage of a secure sum isn't closed; uploaded: it arrived;
    failed: the server refused it; not needed: the round was complete before. why is a sentence; again_sec: the average
    pause before the next step, if it isn't the usual one; not_before_sec: the minimum pause, as requested by the
    server. hindrance: why in a short form; hindrances: the same by round, for rounds with another reason. Neither
    leaves the device.
    """

    state: OutcomeState
    why: str | None = None
    offer: RoundOffer | None = None
    again_sec: float | None = None
    not_before_sec: float = 0.0
    hindrance: Hindrance | None = None
    hindrances: Mapping[str, Hindrance] = field(default_factory=dict)


def participate(work: RoundWork, readiness: Readiness) -> Outcome:
    """Take part in a round: the oldest running one that accepts this device.

    'waiting' once it has joined. A round whose task uses no release is open to devices with any release. If the reader
    allows only training or only private counts, the device considers only those rounds. Nothing else about the reader
    decides whether or when it checks in. The check-in contains only the tasks of this program and the round.
    """
    try:
        check_ready(readiness)
        rounds = work.poll_rounds()
    except NotEligible as not_now:
        return Outcome("idle", str(not_now), hindrance=not_now.hindrance)
    except (BackendUnreachable, BackendRefused, AnswerMalformed) as trouble:
        return _not_now(trouble)
    why_not, hindrances = [], dict[str, Hindrance]()
    for status in rounds:
        try:
            kind = TASKS.get(status.task or "")
            if kind is None:
                raise NotEligible(f"it does not know the task {status.task!r}.", "old")
            _check_round(status, readiness.release if kind.reads_release else None)
            if work.may_have_part(status):
                why_not.append(WORDS("had_its_part", round=status.round))
                continue
            check_task(readiness, kind.channel)
        except NotEligible as not_now:
            why_not.append(str(not_now))
            hindrances[status.round] = not_now.hindrance
            continue
        outcome = _take_place(work, status)
        if outcome.hindrance is not None:
            hindrances[status.round] = outcome.hindrance
        if outcome.why != WORDS("no_place"):
            return replace(outcome, hindrance=None, hindrances=hindrances)
        why_not.append(WORDS("no_place"))
    return Outcome("idle", why_not[0] if why_not else WORDS("no_round"), hindrances=hindrances)


def _take_place(work: RoundWork, status: RoundStatus) -> Outcome:
    """Ask for a place in this round, and join it if the offer is acceptable."""
    # Of a round that reads no release the round's own is repeated, the same from every device: whatever a server
    # names there, no check-in reveals which one this device holds.
    release = short_release(status.release)
    message = CheckIn(protocol=PROTOCOL_VERSION, release=release, tasks=tuple(TASKS), round=status.round)
    try:
        offer = work.ask_for_place(message)
    except (BackendUnreachable, BackendRefused, AnswerMalformed) as trouble:
        return _not_now(trouble)
    except RoundTakenOver as elsewhere:
        return Outcome("idle", str(elsewhere))
    except OfferRefused as refusal:
        return Outcome("declined", str(refusal), hindrance=hindrance_of(refusal))
    if offer is None:
        return Outcome("idle", WORDS("no_place"), hindrance="full")
    try:
        work.check_offer(offer)
        work.join(offer)
    except RoundTakenOver as elsewhere:
        return Outcome("idle", str(elsewhere))
    except (NotEligible, ProtectionTooWeak, BudgetSpent) as refusal:
        return Outcome("declined", str(refusal), offer, hindrance=hindrance_of(refusal))
    return Outcome("waiting", WORDS("joined"), offer)


def finish(work: RoundWork, offer: RoundOffer) -> Outcome:
    """Compute and send the update of a round without a secure sum.

    'waiting' with `again_sec` before it is due.
    """
    try:
        update = work.update(offer)
        if update is None:
            return Outcome("waiting", WORDS("computing"), offer, again_sec=AGAIN_SEC)
        work.send(offer, update)
    except RoundTakenOver as elsewhere:
        return Outcome("idle", str(elsewhere))
    except (NotEligible, ProtectionTooWeak, BudgetSpent) as refusal:
        return left(offer, "declined", str(refusal), hindrance_of(refusal))
    except (BackendUnreachable, AnswerMalformed) as trouble:
        return Outcome("waiting", str(trouble), offer)
    except BackendRefused as refusal:
        if is_complete(refusal):
            return left(offer, "not needed", str(refusal), "full")
        if may_pass(refusal):
            return Outcome("waiting", str(refusal), offer)
        return left(offer, "failed", str(refusal), hindrance_of(refusal))
    return Outcome("uploaded", None, offer)


def left(offer: RoundOffer, state: OutcomeState, why: str | None, hindrance: Hindrance | None) -> Outcome:
    """Return the outcome of a device that has left the offer's round."""
    hindrances = {} if hindrance is None else {offer.manifest.round: hindrance}
    return Outcome(state, why, offer, hindrances=hindrances)


def may_pass(refusal: BackendRefused) -> bool:
    """Return whether the same request may succeed later: the problem is the server's."""
    return refusal.problem.status >= 500


def hindrance_of(trouble: Exception | str | None) -> Hindrance:
    """Return the short reason why a device stayed out of a round, from the error raised."""
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
    """Return whether the round was already complete.

    More devices are invited than needed, since some always drop out.
    """
    return refusal.problem.type.endswith("round-closed") and refusal.problem.field == "cohort"


def _not_now(trouble: BackendUnreachable | BackendRefused | AnswerMalformed) -> Outcome:
    """Return the outcome of a step that joined nothing.

    The next step follows after the usual pause, or a longer one if the backend asks for it.
    """
    requested_sec = trouble.retry_after_sec if isinstance(trouble, BackendRefused) else None
    return Outcome("idle", str(trouble), not_before_sec=requested_sec or 0.0, hindrance="unreachable")


def _check_round(status: RoundStatus, release: ReleaseId | None) -> None:
    """Raise NotEligible unless the round is for this release.

    release: the one in use, None if the round's task uses none.
    """
    if status.state not in ("open", "updates", "keys"):
        raise NotEligible(f"{status.round} is {status.state}.", "late")
    if release is not None and status.release != release:
        raise NotEligible(f"{status.round} is for release {status.release}, this device has {release}.", "old")
    if status.uploaded >= status.cohort:
        raise NotEligible(f"{status.round} has all its updates.", "full")
