"""Take a device through the secure sum of a round: what to send, what to wait for, and when to leave.

No state is kept in memory between two steps. Each step restores the part, sends its message if that has not arrived,
requests the stage's answer, and writes the next state to the disk before the next message leaves.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

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
    SumAborted,
)
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.noise_sources import NoiseSource
from device_app.privacy.protections.registry import resolve
from device_app.privacy.requests import seal_poll
from device_app.privacy.secagg.messages import NO_CONTRIBUTION, Contribution, Reply, SumState, begin_sum
from device_app.privacy.secagg.transitions import SumParticipant
from device_app.settings import PrivacySettings
from device_app.store.participations import RoundUploads, SumPart, SumParts
from device_app.stores import DeviceStores
from device_app.training.eligibility import MALFORMED
from device_app.training.participant import AGAIN_SEC, WORDS, Outcome, RoundWork, hindrance_of, left, may_pass
from device_app.uplink.backend_client import Uplink
from protocol.rounds import GROUP, RoundManifest, RoundOffer, SignedOffer

GRACE_SEC = 60.0
"""How long after a round's deadline a device without an answer keeps polling."""
PAID = ("masked", "agree", "unmask")
APPLIED_WITHOUT = WORDS("applied_without")
WAITS = WORDS.table("waits")


class SecAggClient:
    """Continues the running sums, each independently."""

    def __init__(
        self,
        stores: DeviceStores,
        uplink: Uplink,
        *,
        work: RoundWork,
        ledger: Ledger,
        noise: NoiseSource,
        privacy: Callable[[], PrivacySettings],
        clock: Callable[[], datetime],
        threads: int = 1,
    ) -> None:
        """Create the client.

        At each step `work` checks again what the reader may have changed and whether the key is still trusted.
        """
        self._database, self._participations, self._uplink = stores.database, stores.participations, uplink
        self._work, self._ledger, self._noise, self._clock, self._threads = work, ledger, noise, clock, threads
        self._privacy = privacy
        self.parts = SumParts(stores.database)
        self._uploads = RoundUploads(stores.database)

    def begin(self, offer: RoundOffer, signed: SignedOffer) -> None:
        """Make keys for a round, which are stored before any is sent.

        Raises RoundTakenOver if the round already has keys. signed: the offer as it was received; its signer is checked
        again before the charge.
        """
        assert offer.manifest.terms is not None
        state = begin_sum(offer.manifest.terms)
        with self._database.transaction():
            part = SumPart(offer.manifest.round, signed.model_dump_json(), state.model_dump_json())
            self.parts.begin(part, self._clock())
            self._record(part.round, WORDS("joined"))

    def go_on(self) -> Outcome | None:
        """Advance each running sum as far as the server's answers allow; return None if there is none.

        If there are several sums, return the outcome of a waiting one. 'waiting': a stage isn't closed, or the server
        doesn't answer; 'uploaded': everything is sent; 'not needed': the cohort was complete before its keys arrived;
        'declined' and 'failed': this device has left the sum, and deleted its keys.
        """
        outcomes = [self._go_on_with(part) for part in self.parts.under_way()]
        return next((each for each in outcomes if each.state == "waiting"), outcomes[-1] if outcomes else None)

    def _go_on_with(self, part: SumPart) -> Outcome:
        offer, signed = _kept_offer(part)
        while True:
            try:
                further = self._stage(part, offer, signed)
            except RoundTakenOver as elsewhere:
                return self._wait(offer, str(elsewhere))  # the next step starts from where that one stands
            if isinstance(further, Outcome):
                return further
            part = further

    def forget_unsent(self) -> None:
        """Leave a sum whose masked vector hasn't arrived.

        A vector that has arrived can't be withdrawn: the others open the sum.
        """
        for part in self.parts.under_way():
            if part.payload is not None and not part.sent:
                with suppress(RoundTakenOver):  # another thread has gone on with it: it has left
                    self._leave(part, _kept_offer(part)[0], "declined", WORDS("deleted"))

    def _stage(self, part: SumPart, offer: RoundOffer, signed: SignedOffer) -> SumPart | Outcome:
        """Send the stage's message if it has not arrived, then request the answer.

        Returns the part at its next stage, or the outcome of this step.
        """
        state = SumState.model_validate_json(part.state)
        try:
            self._work.check_wanted(offer.manifest.task)
            if state.stage in PAID:
                resolve(offer.manifest.protection).check_again(offer.manifest, self._privacy())
            else:
                self._work.check_signer(signed)
                if self._clock() > offer.manifest.closes_at + timedelta(seconds=GRACE_SEC):
                    return self._leave(part, offer, "failed", WORDS("overdue"), "late")
            if not part.sent:
                part = self._send(part, state, offer)
            if state.stage == "unmask":
                return self._leave(part, offer, "uploaded", None)
            answer = self._uplink.sum_answer(seal_poll(offer, state.stage), state.stage)
            if answer is None:
                return self._wait(offer, WAITS[state.stage])
            contribution = self._contribution(offer) if state.stage == "complaints" else NO_CONTRIBUTION
            if contribution is None:
                return self._wait(offer, WAITS[state.stage])
            return self._advance(part, state, offer, signed, answer, contribution)
        except (NotEligible, ProtectionTooWeak) as unwanted:
            # Switched off means that nothing more leaves, whatever it has cost. The others' sum bears who vanishes.
            if state.stage in ("agree", "unmask") or (state.stage == "masked" and part.sent):
                return self._leave(part, offer, "uploaded", WORDS("left_after"))
            return self._leave(part, offer, "declined", unwanted)
        except (OfferRefused, BudgetSpent, SumAborted) as refusal:
            return self._leave(part, offer, "declined", refusal)
        except BackendRefused as refusal:
            if may_pass(refusal):
                return self._wait(offer, str(refusal))
            if state.stage in PAID and refusal.problem.type.endswith("round-closed"):
                # The others needed no more of it: what became of the round is asked for like that of any upload.
                return self._leave(
                    part, offer, "uploaded", WORDS("left_out") if refusal.problem.field == GROUP else None
                )
            if state.stage == "keys" and refusal.problem.type.endswith("sum-stage-closed"):
                return self._leave(part, offer, "not needed", WORDS("complete"), "full")
            return self._leave(part, offer, "failed", refusal)
        except MALFORMED as fault:
            # A vector that can't be made or sealed won't be at the next try either; the fault itself is shown.
            self._leave(part, offer, "failed", fault)
            raise
        except (BackendUnreachable, AnswerMalformed) as trouble:
            if self._clock() > offer.manifest.closes_at + timedelta(seconds=GRACE_SEC):
                return self._leave(part, offer, "failed", trouble)
            return self._wait(offer, str(trouble))

    def _contribution(self, offer: RoundOffer) -> Contribution | None:
        """Return this device's vector and its charge; None before the update is due.

        Raises what `RoundWork.update` raises.
        """
        update = self._work.update(offer)
        if update is None:
            return None
        protection, delta = resolve(offer.manifest.protection), self._privacy().delta_per_sum
        return protection.contribute(update, offer.manifest, noise=self._noise, delta=delta)

    def _send(self, part: SumPart, state: SumState, offer: RoundOffer) -> SumPart:
        step = self._participant(state, NO_CONTRIBUTION, part).step()
        self._uplink.sum_message(offer, state.stage, step.sealed)
        arrived = replace(part, sent=True, payload=None)  # megabytes that every later step would read again
        with self._database.transaction():
            self.parts.go_on(part, arrived, self._clock())
            self._record(part.round, WAITS[state.stage], sent_bytes=len(step.sealed.payload))
        return arrived

    def _advance(
        self,
        part: SumPart,
        state: SumState,
        offer: RoundOffer,
        signed: SignedOffer,
        answer: Reply,
        contribution: Contribution,
    ) -> SumPart:
        """Return the part at its next stage.

        The masked vector, its charge and its state are written in one transaction. It is refused to all but one of
        several processes, to a vector other than the one the round is bound to, and to an offer whose signer this
        device no longer trusts.
        """
        participant = self._participant(state, contribution, part)
        with self._database.transaction():
            step = participant.receive(answer)
            masked = step.state.stage == "masked"
            payload = step.sealed.payload if masked else None
            after = SumPart(part.round, part.offer, step.state.model_dump_json(), payload)
            self.parts.go_on(part, after, self._clock())
            if masked:
                self._work.check_signer(signed)
                self._work.check_wanted(offer.manifest.task)
                assert step.state.masked_sha256 is not None
                self._uploads.bind(part.round, step.state.masked_sha256, self._clock())
                words = WORDS("paid")
                self._record(part.round, words, epsilon=contribution.charge.epsilon)
                if contribution.paid is not None:
                    contribution.paid()
        return after

    def _participant(self, state: SumState, contribution: Contribution, part: SumPart) -> SumParticipant:
        return SumParticipant(
            state,
            contribution,
            self._ledger,
            payload=part.payload,
            smallest=self._privacy().smallest_sum,
            threads=self._threads,
        )

    def _wait(self, offer: RoundOffer, why: str) -> Outcome:
        return Outcome("waiting", why, offer, again_sec=AGAIN_SEC)

    def _leave(
        self,
        part: SumPart,
        offer: RoundOffer,
        state: Literal["uploaded", "declined", "failed", "not needed"],
        why: Exception | str | None,
        hindrance: Hindrance | None = None,
    ) -> Outcome:
        """Delete the keys; what was sent reveals nothing by itself."""
        words = None if why is None else str(why)
        with self._database.transaction():
            self.parts.drop(part)
            self._participations.update(offer.manifest.round, state=state, at=self._clock(), detail=words)
        self._database.fold()  # the log holds every earlier state, and states hold keys
        if state != "uploaded" and hindrance is None:
            hindrance = hindrance_of(why)
        return left(offer, state, words, hindrance)

    def _record(self, round_id: str, words: str, *, sent_bytes: int = 0, epsilon: float | None = None) -> None:
        """Record on the page what this device does for the round, and all it has sent and spent."""
        before = self._participations.get(round_id)
        total = sent_bytes + (0 if before is None else before.sent_bytes)
        self._participations.update(
            round_id, state="summing", at=self._clock(), detail=words, sent_bytes=total, epsilon=epsilon
        )


def _kept_offer(part: SumPart) -> tuple[RoundOffer, SignedOffer]:
    """Return a part's offer, and the same offer as it was signed."""
    signed = SignedOffer.model_validate_json(part.offer)
    return RoundOffer(manifest=RoundManifest.model_validate_json(signed.manifest), pseudonym=signed.pseudonym), signed
