"""The server half of a secure sum: a state machine over a record and one running sum (Bonawitz et al. 2017, figure 4).

Whoever drives it (a coordinator, a test, a bench) hands in the devices' messages, calls `close` when a stage's deadline
has come or it is `complete`, hands out the answers, and stores `record` and `total` together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

import numpy as np

from backend.federation.errors import UnknownPseudonym
from backend.federation.secagg.errors import SumFailed, SumMessageConflict, SumMessageRefused, SumStageClosed
from backend.federation.secagg.graph import Assumptions, choose_neighbourhood, closed_neighbourhoods, random_circle
from backend.federation.secagg.record import ServerStage, SumRecord
from backend.federation.secagg.unmask import leftover_masks
from device_app.wire.masks import apply_masks
from device_app.wire.pairing import check_agreement, check_keys
from device_app.wire.ring import RingVector, ring_dtype
from device_app.wire.secagg import (
    AdvertisedKeys,
    Agreement,
    Agreements,
    Box,
    MemberSignature,
    RevealedShares,
    Roster,
    RosterEntry,
    SecaggError,
    SharedKeys,
    Shares,
    SumTerms,
    Survivors,
    required_threshold,
)

V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class OpenedSum:
    """The sum of the survivors' vectors in the ring, and who they were."""

    vector: RingVector
    survivors: tuple[int, ...]


class SecureSum:
    """One secure sum on the server.

    Formal guarantees: of the vectors only the running sum of masked ones is kept; a masked vector lives from its
    arrival until it is added. Masks are taken off the sum of all survivors at once, at least max(t, cohort_minimum) of
    them, and off nothing else; shares of both secrets of one member are never asked for and never accepted.
    """

    def __init__(
        self,
        terms: SumTerms,
        *,
        threshold: int | None = None,
        assumptions: Assumptions | None = None,
    ) -> None:
        """A new sum. threshold: t, where it isn't to be the least that devices accept (or the sparse graph's own)."""
        self.record = SumRecord(terms=terms, wanted_threshold=threshold)
        self.total: RingVector = np.zeros(terms.length, dtype=ring_dtype(terms.bits))
        self._assumptions = assumptions
        self._context = terms.digest()
        self._neighbours: dict[int, tuple[int, ...]] = {}

    @classmethod
    def restore(cls, record_json: str, total: bytes | None, *, assumptions: Assumptions | None = None) -> SecureSum:
        """Go on from what was stored; None is a running sum of nothing."""
        record = SumRecord.model_validate_json(record_json)
        resumed = cls(record.terms, assumptions=assumptions)
        resumed.record = record
        if total is not None:
            resumed.total = np.frombuffer(total, dtype=resumed.total.dtype).copy()
        if record.circle:
            resumed._neighbours = closed_neighbourhoods(record.circle, record.degree)
        return resumed

    @property
    def stage(self) -> ServerStage:
        """Which messages are taken now."""
        return self.record.stage

    def advertise(self, pseudonym: str, keys: AdvertisedKeys) -> bool:
        """Stage keys. Every message method returns True if the same message came before, and changes nothing then."""
        record = self.record
        if (number := record.members.get(pseudonym)) is not None:
            return _same(record.keys[number], keys, "keys")
        self._at("keys")
        if len(record.members) >= record.terms.cohort:
            raise SumMessageRefused("The cohort is complete.", field="cohort", limit=str(record.terms.cohort))
        known = {key for one in record.keys.values() for key in (one.encryption_key, one.mask_key, one.verify_key)}
        offered = (keys.encryption_key, keys.mask_key, keys.verify_key)
        if known & set(offered) or len(set(offered)) < len(offered):
            raise SumMessageRefused("A key is another member's, or stands there twice.", field="keys")
        _believe(lambda: check_keys(self._context, keys))
        number = len(record.members) + 1
        record.members[pseudonym], record.keys[number] = number, keys
        return False

    def share(self, pseudonym: str, shared: SharedKeys) -> bool:
        """Stage shares: a box for everyone on the sender's roster."""
        record, member = self.record, self._member(pseudonym)
        received = sha256(shared.model_dump_json().encode()).hexdigest()
        if member in record.shared_sha256:
            return _same(record.shared_sha256[member], received, "shares")
        self._at("shares")
        due = tuple(one for one in self._neighbours[member] if one != member)
        if tuple(box.member for box in shared.boxes) != due:
            raise SumMessageRefused("There must be one box for each other member of the roster.", field="boxes")
        for box in shared.boxes:
            record.boxes.setdefault(box.member, {})[member] = box.box
        record.commitments[member] = shared.seed_commitment
        record.shared_sha256[member] = received
        return False

    def add_masked(self, pseudonym: str, chunks: Iterable[bytes]) -> bool:
        """Stage masked: one vector, streamed; added when whole, then forgotten. Half a vector changes nothing."""
        record, member = self.record, self._member(pseudonym)
        if member not in record.uploads:
            self._at("masked")
            if member not in record.commitments:
                raise SumMessageRefused("This member has shared no keys.", field="pseudonym")
        masked, received = self._read(chunks)
        if member in record.uploads:
            return _same(record.uploads[member], received, "masked")
        self.total += masked
        record.uploads[member] = received
        return False

    def agree(self, pseudonym: str, agreement: Agreement) -> bool:
        """Stage agree: a signature on (round, roster, U3)."""
        record, member = self.record, self._member(pseudonym)
        if member in record.agreements:
            return _same(record.agreements[member], agreement.signature, "agree")
        self._at("agree")
        self._check_survivor(member)
        told, key = self.roster(pseudonym).digest(), record.keys[member].verify_key
        _believe(lambda: check_agreement(self._context, told, record.survivors, key, agreement.signature))
        record.agreements[member] = agreement.signature
        return False

    def reveal(self, pseudonym: str, revealed: RevealedShares) -> bool:
        """Stage unmask: exactly the seeds of the survivors and the keys of the dropped, as far as the sender knows."""
        record, member = self.record, self._member(pseudonym)
        if member in record.answers:
            return _same(record.answers[member], revealed, "unmask")
        self._at("unmask")
        self._check_survivor(member)
        alive = set(record.survivors)
        held = [one for one in self._neighbours[member] if one in record.commitments]
        seeds, keys = tuple(one.member for one in revealed.seeds), tuple(one.member for one in revealed.keys)
        if seeds != tuple(one for one in held if one in alive) or keys != tuple(
            one for one in held if one not in alive
        ):
            raise SumMessageRefused("The shares are not of the members that are due.", field="seeds")
        record.answers[member] = revealed
        return False

    @property
    def complete(self) -> bool:
        """Whether nothing more is to be waited for at this stage; unmasking needs only the threshold."""
        record = self.record
        if record.stage == "unmask":
            return all(
                sum(1 for holder in self._neighbours[member] if holder in record.answers) >= record.threshold
                for member in record.commitments
            )
        expected = {
            "keys": (len(record.members), record.terms.cohort),
            "shares": (len(record.commitments), len(record.members)),
            "masked": (len(record.uploads), len(record.commitments)),
            "agree": (len(record.agreements), len(record.survivors)),
        }
        come, due = expected.get(record.stage, (0, 0))
        return come >= due

    def close(self) -> ServerStage:
        """End the stage with those who came. Raises SumFailed, after which the sum is `failed`, if they are too few."""
        record = self.record
        try:
            if record.stage == "keys":
                self._draw_graph()
                record.stage = "shares"
            elif record.stage == "shares":
                self._enough("shared their keys", len(record.commitments), record.threshold)
                record.stage = "masked"
            elif record.stage == "masked":
                self._enough("sent a masked vector", len(record.uploads), self.least)
                record.survivors = tuple(sorted(record.uploads))
                record.stage = "agree" if record.terms.mode == "active" else "unmask"
            elif record.stage == "agree":
                self._enough("agreed on the survivors", len(record.agreements), record.threshold)
                record.stage = "unmask"
            else:
                raise SumStageClosed("one that ends without opening", record.stage)
        except SumFailed as failed:
            self.fail(failed.detail)
            raise
        return record.stage

    def open(self, *, threads: int = 1) -> OpenedSum:
        """Take the masks off the sum. Raises SumFailed if a secret can't be joined: nothing is opened then."""
        self._at("unmask")
        record = self.record
        try:
            left = leftover_masks(record, self._neighbours)
        except SumFailed as failed:
            self.fail(failed.detail)
            raise
        apply_masks(self.total, left.plus, left.minus, threads=threads)
        self.finish()
        return OpenedSum(self.total, record.survivors)

    def finish(self) -> None:
        """Mark the sum as opened, and forget what only opening needed. Raises SumStageClosed before stage unmask."""
        self._at("unmask")
        self._forget()
        self.record.stage = "opened"

    def fail(self, reason: str) -> None:
        """End the sum; what it holds is forgotten."""
        self.record.stage, self.record.reason = "failed", reason
        self._forget()
        self.total[:] = 0

    def roster(self, pseudonym: str) -> Roster:
        """Answer of stage keys."""
        record, member = self.record, self._member(pseudonym)
        self._past("keys")
        return Roster(
            round=record.terms.round,
            me=member,
            cohort=len(record.members),
            threshold=record.threshold,
            members=tuple(RosterEntry(member=one, keys=record.keys[one]) for one in self._neighbours[member]),
        )

    def shares(self, pseudonym: str) -> Shares:
        """Answer of stage shares: the boxes for this member, from those whose shares all came in time."""
        member = self._member(pseudonym)
        self._past("shares")
        boxes = self.record.boxes.get(member, {})
        return Shares(boxes=tuple(Box(member=sender, box=boxes[sender]) for sender in sorted(boxes)))

    def survivors(self, pseudonym: str) -> Survivors:
        """Answer of stage masked."""
        member = self._member(pseudonym)
        self._past("masked")
        alive = set(self.record.survivors)
        return Survivors(members=tuple(one for one in self._neighbours[member] if one in alive))

    def agreements(self, pseudonym: str) -> Agreements:
        """Answer of stage agree."""
        self._member(pseudonym)
        self._past("agree")
        signed = self.record.agreements
        return Agreements(
            signatures=tuple(MemberSignature(member=one, signature=signed[one]) for one in sorted(signed))
        )

    @property
    def least(self) -> int:
        """The fewest survivors whose sum may be opened."""
        return max(self.record.threshold, self.record.terms.cohort_minimum)

    def _draw_graph(self) -> None:
        record, members = self.record, len(self.record.members)
        self._enough("advertised keys", members, record.terms.cohort_minimum)
        chosen = None
        if record.terms.graph == "sparse":
            chosen = choose_neighbourhood(members, self._assumptions)
        record.circle = random_circle(members) if chosen else tuple(range(1, members + 1))
        record.degree = chosen.degree if chosen else members - 1
        usual = chosen.threshold if chosen else max(2, required_threshold(record.terms, members))
        record.threshold = record.wanted_threshold or usual
        self._neighbours = closed_neighbourhoods(record.circle, record.degree)
        self._enough("advertised keys", len(self._neighbours[1]), record.threshold)

    def _read(self, chunks: Iterable[bytes]) -> tuple[RingVector, str]:
        limit = self.record.terms.vector_bytes
        scratch = np.empty(limit, dtype=np.uint8)
        hashed, filled = sha256(), 0
        for chunk in chunks:
            if filled + len(chunk) > limit:
                raise SumMessageRefused("The vector is too long.", field="body", limit=f"{limit} bytes")
            scratch[filled : filled + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
            hashed.update(chunk)
            filled += len(chunk)
        if filled != limit:
            raise SumMessageRefused("The vector is too short.", field="body", limit=f"{limit} bytes")
        return scratch.view(self.total.dtype), hashed.hexdigest()

    def _member(self, pseudonym: str) -> int:
        member = self.record.members.get(pseudonym)
        if member is None:
            raise UnknownPseudonym
        return member

    def _at(self, stage: ServerStage) -> None:
        if self.record.stage != stage:
            raise SumStageClosed(stage, self.record.stage)

    def _past(self, stage: ServerStage) -> None:
        order: tuple[ServerStage, ...] = ("keys", "shares", "masked", "agree", "unmask", "opened")
        now = self.record.stage
        if now == "failed" or order.index(now) <= order.index(stage):
            raise SumStageClosed(f"past {stage}", now)

    def _check_survivor(self, member: int) -> None:
        if member not in self.record.survivors:
            raise SumMessageRefused("This member's vector is not in the sum.", field="pseudonym")

    def _enough(self, what: str, come: int, needed: int) -> None:
        if come < needed:
            raise SumFailed(f"{come} members {what}; {needed} are needed.")

    def _forget(self) -> None:
        self.record.answers, self.record.boxes = {}, {}


def _same(before: V, now: V, stage: str) -> bool:
    if before != now:
        raise SumMessageConflict(stage)
    return True


def _believe(check: Callable[[], None]) -> None:
    try:
        check()
    except SecaggError as broken:
        raise SumMessageRefused(f"{str(broken).capitalize()}.", field="signature") from broken
