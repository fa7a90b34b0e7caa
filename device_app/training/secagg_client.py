"""A device's way through the secure sum of a round: what to send, what to wait for, and when to leave.

Nothing of it is in memory between two steps. Each step restores the part, sends its message if that has not arrived,
asks for the stage's answer, and keeps the next state on the disk before the next message leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

import numpy as np
from pydantic import ValidationError

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
from device_app.privacy.ledger import Ledger
from device_app.privacy.protections.registry import resolve
from device_app.privacy.requests import seal_poll
from device_app.privacy.sealed import Charge
from device_app.privacy.secagg.contribution import Contribution
from device_app.privacy.secagg.messages import Reply, Step
from device_app.privacy.secagg.participant import take_part
from device_app.privacy.secagg.state import SumState, begin_sum
from device_app.prose import Prose
from device_app.store.participations import RoundUploads
from device_app.store.sum_parts import SumPart, SumParts
from device_app.training.delivery import UploadChannel
from device_app.training.participant import MALFORMED, Outcome, hindrance_of, may_pass
from device_app.wire.offers import SignedOffer
from device_app.wire.ring import ring_dtype
from device_app.wire.rounds import GROUP, RoundManifest, RoundOffer

AGAIN_SEC = 1.0
GRACE_SEC = 60.0
"""How long past a round's deadline a device that gets no answer goes on asking."""
PAID = ("masked", "agree", "unmask")
WORDS = Prose("device_app.training", "words.toml")
APPLIED_WITHOUT = WORDS("applied_without")
WAITS = WORDS.table("waits")


class SecAggClient:
    """Goes on with the sums under way, each by itself."""

    def __init__(
        self,
        channel: UploadChannel,
        *,
        ledger: Ledger,
        clock: Callable[[], datetime],
        contribution: Callable[[RoundOffer], Contribution],
        check_signer: Callable[[SignedOffer], object],
        check_wanted: Callable[[str], None],
        threads: int = 1,
    ) -> None:
        """All that a reader may change or a key may lose between two steps is asked anew.

        contribution: computes the device's vector, when it's to be masked; raises as `eligibility.check_offer`.
        check_signer: raises OfferRefused unless the key that this device trusts now has signed the offer.
        check_wanted: raises NotEligible if the reader lets a device do no such task now.
        """
        self._database, self._participations, self._uplink = channel.database, channel.participations, channel.uplink
        self._ledger, self._clock, self._contribution, self._threads = ledger, clock, contribution, threads
        self._check_signer, self._check_wanted = check_signer, check_wanted
        self.parts = SumParts(channel.database)
        self._uploads = RoundUploads(channel.database)

    def begin(self, offer: RoundOffer, signed: SignedOffer) -> None:
        """Fresh keys for a round, kept before any leaves. Raises RoundTakenOver if the round has keys.

        signed: the same offer as it came, kept so that its signer can be looked at again before it is paid for.
        """
        assert offer.manifest.terms is not None
        state = begin_sum(offer.manifest.terms)
        with self._database.transaction():
            part = SumPart(offer.manifest.round, signed.model_dump_json(), state.model_dump_json())
            self.parts.begin(part, self._clock())
            self._tell(part.round, WORDS("joined"))

    def go_on(self) -> Outcome | None:
        """As far as the server's answers allow, with each sum under way; None if there is none.

        Of several outcomes, that of one that waits.

        'waiting': a stage isn't closed, or nobody answers; 'uploaded': all is sent; 'not needed': the cohort was
        complete before its keys came; 'declined' and 'failed': this device has left the sum, and forgotten its keys.
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
        """Leave a sum whose masked vector hasn't arrived. One that has can't be taken back: others open the sum."""
        for part in self.parts.under_way():
            if part.payload is not None and not part.sent:
                with suppress(RoundTakenOver):  # another thread has gone on with it: it has left
                    self._leave(part, _kept_offer(part)[0], "declined", WORDS("deleted"))

    def _stage(self, part: SumPart, offer: RoundOffer, signed: SignedOffer | None) -> SumPart | Outcome:
        """Send the stage's message, if that has not arrived, and go on to the next; or how this step ended."""
        state = SumState.model_validate_json(part.state)
        try:
            self._check_wanted(offer.manifest.task)
            if state.stage in PAID:
                resolve(offer.manifest.protection).check_again(offer.manifest, self._ledger.settings)
            else:
                self._check_offer(signed)
                if self._clock() > offer.manifest.closes_at + timedelta(seconds=GRACE_SEC):
                    return self._leave(part, offer, "failed", WORDS("overdue"), "late")
            if not part.sent:
                part = self._send(part, state, offer)
            if state.stage == "unmask":
                return self._leave(part, offer, "uploaded", None)
            answer = self._uplink.sum_answer(seal_poll(offer, state.stage), state.stage)
            if answer is None:
                return self._wait(offer, WAITS[state.stage])
            return self._advance(part, state, offer, signed, answer)
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

    def _check_offer(self, signed: SignedOffer | None) -> None:
        if signed is None:
            raise OfferRefused(WORDS("unsigned"))
        self._check_signer(signed)

    def _send(self, part: SumPart, state: SumState, offer: RoundOffer) -> SumPart:
        step = next(self._take_part(state, _NOTHING, part))
        self._uplink.sum_message(offer, state.stage, step.sealed)
        arrived = replace(part, sent=True)
        with self._database.transaction():
            self.parts.go_on(part, arrived, self._clock())
            self._tell(part.round, WAITS[state.stage], sent_bytes=len(step.sealed.payload))
        return arrived

    def _advance(
        self, part: SumPart, state: SumState, offer: RoundOffer, signed: SignedOffer | None, answer: Reply
    ) -> SumPart:
        """The next state; the masked vector, its price and the state that goes with it are one transaction.

        It is refused to all but one of several processes, to a vector other than the one the round is bound to, and to
        an offer whose signer this device no longer trusts.
        """
        contribution = self._contribution(offer) if state.stage == "complaints" else _NOTHING
        way = self._take_part(state, contribution, part)
        next(way)
        with self._database.transaction():
            step = way.send(answer)
            masked = step.state.stage == "masked"
            payload = step.sealed.payload if masked else None
            after = SumPart(part.round, part.offer, step.state.model_dump_json(), payload)
            self.parts.go_on(part, after, self._clock())
            if masked:
                self._check_offer(signed)
                self._check_wanted(offer.manifest.task)
                assert step.state.masked_sha256 is not None
                self._uploads.bind(part.round, step.state.masked_sha256, self._clock())
                words = WORDS("paid")
                self._tell(part.round, words, epsilon=contribution.charge.epsilon)
                if contribution.paid is not None:
                    contribution.paid()
        return after

    def _take_part(
        self, state: SumState, contribution: Contribution, part: SumPart
    ) -> Generator[Step, Reply, SumState]:
        return take_part(
            state,
            contribution,
            self._ledger,
            payload=part.payload,
            smallest=self._ledger.settings.smallest_sum,
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
        """Forget the keys; what was sent opens nothing by itself."""
        words = None if why is None else str(why)
        with self._database.transaction():
            self.parts.drop(part)
            self._participations.update(offer.manifest.round, state=state, at=self._clock(), detail=words)
        self._database.fold()  # the log has every state that was, and a state has keys
        if state != "uploaded" and hindrance is None:
            hindrance = hindrance_of(why)
        hindrances = {} if hindrance is None else {offer.manifest.round: hindrance}
        return Outcome(state, words, offer, hindrances=hindrances)

    def _tell(self, round_id: str, words: str, *, sent_bytes: int = 0, epsilon: float | None = None) -> None:
        """Keep on the page what this device does for the round, and all it has sent and spent."""
        before = self._participations.get(round_id)
        total = sent_bytes + (0 if before is None else before.sent_bytes)
        self._participations.update(
            round_id, state="summing", at=self._clock(), detail=words, sent_bytes=total, epsilon=epsilon
        )


def _kept_offer(part: SumPart) -> tuple[RoundOffer, SignedOffer | None]:
    """The offer of a part, and as it was signed; None where an earlier version kept it without the signature."""
    try:
        signed = SignedOffer.model_validate_json(part.offer)
    except ValidationError:
        return RoundOffer.model_validate_json(part.offer), None
    return RoundOffer(manifest=RoundManifest.model_validate_json(signed.manifest), pseudonym=signed.pseudonym), signed


_NOTHING = Contribution(np.zeros(0, dtype=ring_dtype(32)), Charge("training", "secure_sum"))
"""Handed over at stages that read no vector; the answer of stage complaints does, and refuses its length."""
