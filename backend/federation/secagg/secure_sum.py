"""The server's side of a secure sum: a state machine over record, messages and running sum.

It follows Bonawitz et al. 2017, figure 4. The caller (a coordinator, a test, a benchmark) passes in the devices'
messages, calls `close` when a stage's deadline has passed or the stage is `complete`, returns the answers (`members`)
to the devices, and stores record, messages and running sum together.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from backend.federation.errors import SumFailed, SumMessageConflict, SumMessageRefused, SumStageClosed
from backend.federation.secagg.complaints import judge
from backend.federation.secagg.decoding import tolerated
from backend.federation.secagg.graph import EACH_ITS_OWN, MaskGraph, random_circle, threshold_of
from backend.federation.secagg.members import Members
from backend.federation.secagg.messages import (
    Entry,
    InMemoryMessages,
    Messages,
    MessageStage,
    ServerStage,
    SumRecord,
    pack_revealed,
    pack_shared,
)
from backend.federation.secagg.unmask import LeftoverMasks, leftover_masks
from protocol.ids import Message
from protocol.pairing import check_agreement, check_alive, check_keys, check_order
from protocol.ring import RingVector, apply_masks, ring_dtype
from protocol.secagg import (
    AdvertisedKeys,
    Agreement,
    Complaints,
    RevealedShares,
    SecaggError,
    SharedKeys,
    SumTerms,
    alive_bits,
    choose_neighbourhood,
)


@dataclass(frozen=True, eq=False)
class OpenedSum:
    """The sum of the survivors' vectors in the ring, and the survivors."""

    vector: RingVector
    survivors: tuple[int, ...]


class SecureSumServer:
    """One secure sum on the server.

    Formal guarantees: of the vectors only the running sum of masked ones is kept; a masked vector exists from its
    arrival until it is added. Masks are removed from the sum of all survivors at once, at least max(t, cohort_minimum)
    of them, and from nothing else; shares of both secrets of one member are never requested and never accepted.
    """

    def __init__(
        self,
        record: SumRecord,
        messages: Messages,
        total: RingVector | None = None,
    ) -> None:
        """Continue a sum from its stored state; use `begin` for a new one.

        total: the running sum; None: nothing was added yet.
        """
        self.record, self.messages, self.members = record, messages, Members(record, messages)
        self._total = total
        self.added = False
        self._context = record.terms.digest()

    @classmethod
    def begin(
        cls,
        terms: SumTerms,
        messages: Messages | None = None,
        *,
        threshold: int | None = None,
    ) -> SecureSumServer:
        """Start a new sum.

        threshold: t; None: the smallest that devices accept (or the sparse graph's own).
        """
        record = SumRecord(terms=terms, wanted_threshold=threshold)
        return cls(record, InMemoryMessages() if messages is None else messages)

    @property
    def total(self) -> RingVector:
        """The running sum; it is allocated at the first access, since most messages don't need it."""
        if self._total is None:
            terms = self.record.terms
            self._total = zero_vector(terms.length, ring_dtype(terms.bits))
        return self._total

    @property
    def stage(self) -> ServerStage:
        """The stage whose messages are accepted now."""
        return self.record.stage

    def advertise(self, pseudonym: str, keys: AdvertisedKeys) -> bool:
        """Receive a message of the `keys` stage.

        Every message method returns True if the same message was received before, and then changes nothing. All of them
        raise SumStageClosed, UnknownPseudonym (except this one), SumMessageRefused, or SumMessageConflict if a
        different message was received before from the same member.
        """
        number, received = self.messages.number(pseudonym), _digest(keys)
        if number is not None and self._is_repeated("keys", number, received):
            return True
        self.members.require_stage("keys")
        number = self.messages.last_number() + 1
        if number > self.record.places:
            raise SumMessageRefused("The cohort is complete.", field="cohort", limit=str(self.record.places))
        _require_valid(lambda: check_keys(self._context, keys))
        # Every honest member would leave a sum that contains such a key, so only its sender is refused.
        _require_valid(lambda: check_order(keys), field="keys")
        offered = (keys.encryption_key, keys.mask_key, keys.verify_key)
        if len(set(offered)) < len(offered) or not self.messages.claim(offered):
            raise SumMessageRefused("A key is another member's, or appears twice.", field="keys")
        self.messages.add(Entry("keys", number, pseudonym, received, keys.model_dump_json().encode()))
        return False

    def share(self, pseudonym: str, shared: SharedKeys) -> bool:
        """Receive a message of the `shares` stage: a box for every member on the sender's roster."""
        member, received = self.members.number(pseudonym), _digest(shared)
        if self._is_repeated("shares", member, received):
            return True
        self.members.require_stage("shares")
        due = tuple(one for one in self.members.neighbours(member) if one != member)
        if tuple(box.member for box in shared.boxes) != due:
            raise SumMessageRefused("There must be exactly one box for each other member of the roster.", field="boxes")
        self.messages.add(Entry("shares", member, pseudonym, received, pack_shared(shared)))
        return False

    def complain(self, pseudonym: str, complaints: Complaints) -> bool:
        """Receive a message of the `complaints` stage: the boxes that the sender could not open.

        Usually there are none.
        """
        member, received = self.members.number(pseudonym), _digest(complaints)
        if self._is_repeated("complaints", member, received):
            return True
        self._check_first("complaints", member)
        accused = set(complaints.members)
        outside = accused - set(self.members.neighbours(member)) | accused & {member}
        if accused and (outside or len(self.messages.members("shares", accused)) < len(accused)):
            raise SumMessageRefused("Complaints can only name members who sent boxes.", field="members")
        self.messages.add(Entry("complaints", member, pseudonym, received, complaints.model_dump_json().encode()))
        return False

    def check_due(self, stage: MessageStage, pseudonym: str) -> None:
        """Check, before a message of this stage is read, that this member may send it.

        It may be a first message while the stage is open and the member took part in the earlier stages, or a repeated
        message at any time. Raises as the message would.
        """
        if stage == "keys":
            if self.messages.number(pseudonym) is None:
                self.members.require_stage("keys")
            return
        member = self.members.number(pseudonym)
        if self.messages.sha256(stage, member) is None:
            self._check_first(stage, member)

    def _check_first(self, stage: MessageStage, member: int) -> None:
        self.members.require_stage(stage)
        if stage in ("complaints", "masked") and self.messages.sha256("shares", member) is None:
            raise SumMessageRefused("This member has not shared keys.", field="pseudonym")
        if stage == "masked" and member in self.record.dropped:
            raise SumMessageRefused("This member was left out of the sum in the complaints stage.", field="pseudonym")
        if stage in ("agree", "unmask"):
            self.members.check_survivor(member)

    def add_masked(self, pseudonym: str, chunks: Iterable[bytes]) -> bool:
        """Receive a masked vector as a stream; it is added when complete and then forgotten.

        An incomplete vector changes nothing.
        """
        self.check_due("masked", pseudonym)
        vector, received = self._read(chunks)
        return self.add_received(pseudonym, (vector,), received)

    def add_received(self, pseudonym: str, blocks: Iterable[RingVector], received: str) -> bool:
        """Add a masked vector that is completely received and has this SHA-256.

        blocks: its elements, block by block; none is read if the message is refused. If iterating over them raises,
        `total` is left with part of the vector added, and the caller must discard it.
        """
        member = self.members.number(pseudonym)
        if self._is_repeated("masked", member, received):
            return True
        self._check_first("masked", member)
        self.added = True
        total, filled = self.total, 0
        for block in blocks:
            part = total[filled : filled + block.size]
            np.add(part, block, out=part)
            filled += block.size
        if filled != total.size:
            raise ValueError(f"blocks: {total.size} elements in all, got {filled}")
        self.messages.add(Entry("masked", member, pseudonym, received))
        return False

    def agree(self, pseudonym: str, agreement: Agreement) -> bool:
        """Receive a message of the `agree` stage: a signature.

        It signs (round, roster, U3), or (round, number, U3) in the sparse graph.
        """
        member, received = self.members.number(pseudonym), _digest(agreement)
        if self._is_repeated("agree", member, received):
            return True
        self.members.require_stage("agree")
        self.members.check_survivor(member)
        key = self.members.keys_of((member,))[member].verify_key
        alive, signature, bits = self.members.alive(member), agreement.signature, b""
        try:
            if self.record.graph.is_complete:
                check_agreement(self._context, self.members.roster(pseudonym).digest(), alive, key, signature)
            else:
                bits = alive_bits(alive, self.record.members)
                check_alive(self._context, member, bits, key, signature)
        except SecaggError as broken:
            # Every other survivor would leave if it received this signature, so only its sender is refused.
            raise SumMessageRefused(
                "The signature is not this member's signature of the round, its roster and its survivors.",
                field="signature",
            ) from broken
        self.messages.add(Entry("agree", member, pseudonym, received, signature + bits))
        return False

    def reveal(self, pseudonym: str, revealed: RevealedShares) -> bool:
        """Receive a message of the `unmask` stage: shares of seeds of survivors and keys of dropped members.

        It must hold exactly the shares of those members that the sender works with.
        """
        member, received = self.members.number(pseudonym), _digest(revealed)
        if self._is_repeated("unmask", member, received):
            return True
        self.members.require_stage("unmask")
        self.members.check_survivor(member)
        alive = self.members.alive(member)
        gone = tuple(one for one in self.members.sharers(member) if one not in set(alive))
        seeds, keys = tuple(one.member for one in revealed.seeds), tuple(one.member for one in revealed.keys)
        if seeds != alive or keys != gone:
            raise SumMessageRefused("The shares are not those of the expected members.", field="seeds")
        self.messages.add(Entry("unmask", member, pseudonym, received, pack_revealed(revealed)))
        return False

    @property
    def complete(self) -> bool:
        """Whether this stage has nothing more to wait for; the `unmask` stage needs only the threshold."""
        stage, messages = self.record.stage, self.messages
        if stage == "keys":
            return messages.count("keys") >= self.record.places
        if stage == "shares":
            return messages.count("shares") >= self.record.members
        if stage == "complaints":
            return messages.count("complaints") >= messages.count("shares")
        if stage == "masked":
            return messages.count("masked") >= messages.count("shares") - len(self.record.dropped)
        if stage == "agree":
            return messages.count("agree") >= messages.count("masked")
        if stage == "unmask" and self.record.needs_all:
            return messages.count("unmask") >= messages.count("masked")
        if stage == "unmask" and messages.count("unmask") >= self.record.threshold:
            return self.record.graph.fewest(messages.members("unmask")) >= self.record.threshold
        return False

    def close(self) -> ServerStage:
        """End the stage with the members that sent their message.

        Raises SumFailed if they are too few; the sum is then `failed`.
        """
        record = self.record
        try:
            if record.stage == "keys":
                self._draw_graph()
                record.stage = "shares"
            elif record.stage == "shares":
                self._enough("shared their keys", self.messages.count("shares"), record.threshold)
                record.stage = "complaints"
            elif record.stage == "complaints":
                self._drop_conflicting()
                record.stage = "masked"
            elif record.stage == "masked":
                self._enough("sent a masked vector", self.messages.count("masked"), self.least)
                record.stage = "agree" if record.terms.mode == "active" else "unmask"
            elif record.stage == "agree":
                self._enough("agreed on the survivors", self.messages.count("agree"), record.threshold)
                record.stage = "unmask"
            else:
                raise SumStageClosed("a stage at which the sum may end unopened", record.stage)
        except SumFailed as failed:
            # If no device came, members did not cause the failure: there are none yet.
            self.fail(failed.detail, by_members=record.stage != "keys")
            raise
        return record.stage

    def open(self, *, threads: int = 1) -> OpenedSum:
        """Remove the masks from the sum and end it.

        Raises SumFailed if a secret can't be reconstructed; nothing is opened then.
        """
        try:
            left = self.leftover()
        except SumFailed as failed:
            self.fail(failed.detail, by_members=failed.by_members, malicious=failed.malicious)
            raise
        self.finish()
        return self.unmask(left, threads=threads)

    def leftover(self) -> LeftoverMasks:
        """Return the masks that are still on the sum.

        Raises SumFailed if a secret can't be reconstructed; nothing is changed.
        """
        self.members.require_stage("unmask")
        return leftover_masks(self.members)

    def unmask(self, left: LeftoverMasks, *, threads: int = 1) -> OpenedSum:
        """Remove these masks from `total`, which is the opened sum afterwards.

        Stored state does not change.
        """
        apply_masks(self.total, left.plus, left.minus, threads=threads)
        return OpenedSum(self.total, left.survivors)

    def finish(self) -> None:
        """Mark the sum as opened and delete what only opening needed.

        Raises SumStageClosed before the `unmask` stage.
        """
        self.members.require_stage("unmask")
        self.messages.forget()
        self.record.stage = "opened"

    def fail(self, reason: str, *, by_members: bool = False, malicious: Sequence[int] = ()) -> None:
        """End the sum and delete its content, except for the malicious members.

        Arguments as in `SumFailed`.
        """
        self.record.stage, self.record.reason, self.record.by_members = "failed", reason, by_members
        if malicious:
            named = self.messages.pseudonyms(malicious)
            self.record.malicious += tuple(each for each in named if each not in self.record.malicious)
        self.messages.forget()
        if self._total is not None:
            self._total[:] = 0

    @property
    def least(self) -> int:
        """The smallest number of survivors whose sum may be opened."""
        return max(self.record.threshold, self.record.terms.cohort_minimum)

    def _draw_graph(self) -> None:
        record, members = self.record, self.messages.count("keys")
        self._enough("advertised keys", members, record.terms.cohort_minimum)
        chosen = None
        if record.terms.graph == "sparse":
            chosen = choose_neighbourhood(members)
        graph = MaskGraph.sparse(random_circle(members), chosen.degree) if chosen else MaskGraph(members, members - 1)
        record.members, record.degree, record.circle = graph.members, graph.degree, graph.circle
        record.threshold = record.wanted_threshold or threshold_of(record.terms, members)
        self._enough("advertised keys", graph.degree + 1, record.threshold)

    def _drop_conflicting(self) -> None:
        """Leave out members with conflicting complaints, before any device sends its vector.

        Raises SumFailed if the remaining members are too few to open the sum.
        """
        record, messages = self.record, self.messages
        sharers = messages.members("shares")
        received = {
            member: Complaints.model_validate_json(body).members for member, body in messages.bodies("complaints")
        }
        # So many shares of one secret may be false; in the sparse graph the smallest neighbourhood counts. Complaints
        # are counted by source: three places of one machine count as one against an honest member.
        limit = max(1, tolerated(record.graph.fewest(sharers), record.threshold))
        verdict = judge(received, limit, messages.sources() if any(received.values()) else EACH_ITS_OWN)
        record.dropped = tuple(one for one in sharers if one not in received or one in verdict.left_out)
        record.malicious = messages.pseudonyms(verdict.malicious) if verdict.malicious else ()
        self._enough("are left after the complaints", len(sharers) - len(record.dropped), self.least)

    def _read(self, chunks: Iterable[bytes]) -> tuple[RingVector, str]:
        limit = self.record.terms.vector_bytes
        scratch = zero_vector(limit, np.dtype(np.uint8))
        hashed, filled = sha256(), 0
        for chunk in chunks:
            if filled + len(chunk) > limit:
                raise SumMessageRefused("The vector is too long.", field="body", limit=f"{limit} bytes")
            scratch[filled : filled + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
            hashed.update(chunk)
            filled += len(chunk)
        if filled != limit:
            raise SumMessageRefused("The vector is too short.", field="body", limit=f"{limit} bytes")
        return scratch.view(ring_dtype(self.record.terms.bits)), hashed.hexdigest()

    def _is_repeated(self, stage: MessageStage, member: int, received: str) -> bool:
        before = self.messages.sha256(stage, member)
        if before is not None and before != received:
            raise SumMessageConflict(stage)
        return before is not None

    def _enough(self, what: str, count: int, needed: int) -> None:
        if count < needed:
            raise SumFailed(f"{count} members {what}; {needed} are needed.")


def _digest(message: Message) -> str:
    return sha256(message.model_dump_json().encode()).hexdigest()


def _require_valid(check: Callable[[], None], field: str = "signature") -> None:
    try:
        check()
    except SecaggError as broken:
        raise SumMessageRefused(f"{str(broken).capitalize()}.", field=field) from broken


def zero_vector(length: int, dtype: np.dtype[Any]) -> RingVector:
    """Return a vector of zeros in memory pages that are returned to the system with it.

    On the heap each thread of the server would keep memory for the largest vector that it ever held.
    """
    # Private: the first access to shared pages, the default, takes twice as long.
    pages = mmap.mmap(-1, max(1, length * dtype.itemsize), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, dtype=dtype, count=length)
