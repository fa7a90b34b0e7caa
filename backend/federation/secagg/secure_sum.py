"""The server half of a secure sum: a state machine over a record, its messages and one running sum.

Bonawitz et al. 2017, figure 4. Whoever drives it (a coordinator, a test, a bench) hands in the devices' messages, calls
`close` when a stage's deadline has come or it is `complete`, hands out the answers (`members`), and stores all three
together.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from backend.federation.secagg.complaints import judge
from backend.federation.secagg.decoding import tolerated
from backend.federation.secagg.errors import SumFailed, SumMessageConflict, SumMessageRefused, SumStageClosed
from backend.federation.secagg.graph import MaskGraph, random_circle
from backend.federation.secagg.members import Members
from backend.federation.secagg.messages import Entry, HeldMessages, Messages, MessageStage
from backend.federation.secagg.packing import pack_revealed, pack_shared
from backend.federation.secagg.record import ServerStage, SumRecord
from backend.federation.secagg.sources import EACH_ITS_OWN
from backend.federation.secagg.unmask import LeftoverMasks, leftover_masks
from device_app.wire.ids import Message
from device_app.wire.masks import apply_masks
from device_app.wire.neighbourhood import choose_neighbourhood
from device_app.wire.pairing import check_agreement, check_keys, check_order
from device_app.wire.ring import RingVector, ring_dtype
from device_app.wire.secagg import (
    AdvertisedKeys,
    Agreement,
    Complaints,
    RevealedShares,
    SecaggError,
    SharedKeys,
    SumTerms,
    required_threshold,
)


@dataclass(frozen=True, eq=False)
class OpenedSum:
    """The sum of the survivors' vectors in the ring, and who they were."""

    vector: RingVector
    survivors: tuple[int, ...]


class SecureSumServer:
    """One secure sum on the server.

    Formal guarantees: of the vectors only the running sum of masked ones is kept; a masked vector lives from its
    arrival until it is added. Masks are taken off the sum of all survivors at once, at least max(t, cohort_minimum) of
    them, and off nothing else; shares of both secrets of one member are never asked for and never accepted.
    """

    def __init__(
        self,
        record: SumRecord,
        messages: Messages,
        total: RingVector | None = None,
    ) -> None:
        """A sum that goes on from what was stored; no total is a running sum of nothing. `begin` is for a new one."""
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
        """A new sum. threshold: t, where it isn't to be the least that devices accept (or the sparse graph's own)."""
        record = SumRecord(terms=terms, wanted_threshold=threshold)
        return cls(record, HeldMessages() if messages is None else messages)

    @property
    def total(self) -> RingVector:
        """The running sum, made when it's first asked for: most messages don't touch it."""
        if self._total is None:
            terms = self.record.terms
            self._total = zero_vector(terms.length, ring_dtype(terms.bits))
        return self._total

    @property
    def stage(self) -> ServerStage:
        """Which messages are taken now."""
        return self.record.stage

    def advertise(self, pseudonym: str, keys: AdvertisedKeys) -> bool:
        """Stage keys. Every message method returns True if the same message came before, and changes nothing then.

        All raise SumStageClosed, UnknownPseudonym but for this one, SumMessageRefused, or SumMessageConflict if another
        message came before in its place.
        """
        number, received = self.messages.number(pseudonym), _digest(keys)
        if number is not None and self._again("keys", number, received):
            return True
        self.members.at("keys")
        number = self.messages.last_number() + 1
        if number > self.record.terms.cohort:
            raise SumMessageRefused("The cohort is complete.", field="cohort", limit=str(self.record.terms.cohort))
        _believe(lambda: check_keys(self._context, keys))
        # Every honest member would leave a sum with such a key in it: its sender is refused, and nobody else notices.
        _believe(lambda: check_order(keys), field="keys")
        offered = (keys.encryption_key, keys.mask_key, keys.verify_key)
        if len(set(offered)) < len(offered) or not self.messages.claim(offered):
            raise SumMessageRefused("A key is another member's, or stands there twice.", field="keys")
        self.messages.add(Entry("keys", number, pseudonym, received, keys.model_dump_json().encode()))
        return False

    def share(self, pseudonym: str, shared: SharedKeys) -> bool:
        """Stage shares: a box for everyone on the sender's roster."""
        member, received = self.members.number(pseudonym), _digest(shared)
        if self._again("shares", member, received):
            return True
        self.members.at("shares")
        due = tuple(one for one in self.members.neighbours(member) if one != member)
        if tuple(box.member for box in shared.boxes) != due:
            raise SumMessageRefused("There must be one box for each other member of the roster.", field="boxes")
        self.messages.add(Entry("shares", member, pseudonym, received, pack_shared(shared)))
        return False

    def complain(self, pseudonym: str, complaints: Complaints) -> bool:
        """Stage complaints: whose boxes the sender could not open; empty from nearly everybody."""
        member, received = self.members.number(pseudonym), _digest(complaints)
        if self._again("complaints", member, received):
            return True
        self._check_first("complaints", member)
        accused = set(complaints.members)
        outside = accused - set(self.members.neighbours(member)) | accused & {member}
        if accused and (outside or len(self.messages.members("shares", accused)) < len(accused)):
            raise SumMessageRefused("Only members who sent boxes can be complained of.", field="members")
        self.messages.add(Entry("complaints", member, pseudonym, received, complaints.model_dump_json().encode()))
        return False

    def check_due(self, stage: MessageStage, pseudonym: str) -> None:
        """Whether a message of this stage may come from this member, before it is read: a first one while the stage is
        open and the member has come so far, or the same again at any time. Raises as the message would."""
        if stage == "keys":
            if self.messages.number(pseudonym) is None:
                self.members.at("keys")
            return
        member = self.members.number(pseudonym)
        if self.messages.sha256(stage, member) is None:
            self._check_first(stage, member)

    def _check_first(self, stage: MessageStage, member: int) -> None:
        self.members.at(stage)
        if stage in ("complaints", "masked") and self.messages.sha256("shares", member) is None:
            raise SumMessageRefused("This member has shared no keys.", field="pseudonym")
        if stage == "masked" and member in self.record.dropped:
            raise SumMessageRefused("This member is out of the sum since stage complaints.", field="pseudonym")
        if stage in ("agree", "unmask"):
            self.members.check_survivor(member)

    def add_masked(self, pseudonym: str, chunks: Iterable[bytes]) -> bool:
        """Stage masked: one vector, streamed; added when whole, then forgotten. Half a vector changes nothing."""
        self.check_due("masked", pseudonym)
        vector, received = self._read(chunks)
        return self.add_received(pseudonym, (vector,), received)

    def add_received(self, pseudonym: str, blocks: Iterable[RingVector], received: str) -> bool:
        """The same of a vector that has come whole, with its SHA-256 as it was found on the way.

        blocks: its elements, one stretch after the other; none is read of a message that isn't taken. What they raise
        leaves `total` half added to: whoever holds it has to throw it away.
        """
        member = self.members.number(pseudonym)
        if self._again("masked", member, received):
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
        """Stage agree: a signature on (round, roster, U3)."""
        member, received = self.members.number(pseudonym), _digest(agreement)
        if self._again("agree", member, received):
            return True
        self.members.at("agree")
        self.members.check_survivor(member)
        roster = self.members.roster(pseudonym)
        key = next(entry.keys.verify_key for entry in roster.members if entry.member == member)
        alive = self.members.alive(member)
        try:
            check_agreement(self._context, roster.digest(), alive, key, agreement.signature)
        except SecaggError as broken:
            # Passed on it would make every other survivor leave: its sender is refused, and nobody else notices.
            raise SumMessageRefused(
                "The signature is not this member's on the round, its roster and its survivors.", field="signature"
            ) from broken
        self.messages.add(Entry("agree", member, pseudonym, received, agreement.signature))
        return False

    def reveal(self, pseudonym: str, revealed: RevealedShares) -> bool:
        """Stage unmask: exactly the seeds of the survivors and the keys of the dropped, as far as the sender knows."""
        member, received = self.members.number(pseudonym), _digest(revealed)
        if self._again("unmask", member, received):
            return True
        self.members.at("unmask")
        self.members.check_survivor(member)
        alive = self.members.alive(member)
        gone = tuple(one for one in self.members.sharers(member) if one not in set(alive))
        seeds, keys = tuple(one.member for one in revealed.seeds), tuple(one.member for one in revealed.keys)
        if seeds != alive or keys != gone:
            raise SumMessageRefused("The shares are not of the members that are due.", field="seeds")
        self.messages.add(Entry("unmask", member, pseudonym, received, pack_revealed(revealed)))
        return False

    @property
    def complete(self) -> bool:
        """Whether nothing more is to be waited for at this stage; unmasking needs only the threshold."""
        stage, messages = self.record.stage, self.messages
        if stage == "keys":
            return messages.count("keys") >= self.record.terms.cohort
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
        """End the stage with those who came. Raises SumFailed, after which the sum is `failed`, if they are too few."""
        record = self.record
        try:
            if record.stage == "keys":
                self._draw_graph()
                record.stage = "shares"
            elif record.stage == "shares":
                self._enough("shared their keys", self.messages.count("shares"), record.threshold)
                record.stage = "complaints"
            elif record.stage == "complaints":
                self._hear_complaints()
                record.stage = "masked"
            elif record.stage == "masked":
                self._enough("sent a masked vector", self.messages.count("masked"), self.least)
                record.stage = "agree" if record.terms.mode == "active" else "unmask"
            elif record.stage == "agree":
                self._enough("agreed on the survivors", self.messages.count("agree"), record.threshold)
                record.stage = "unmask"
            else:
                raise SumStageClosed("one that ends without opening", record.stage)
        except SumFailed as failed:
            # That nobody turned up is no failure of members: there are none yet.
            self.fail(failed.detail, by_members=record.stage != "keys")
            raise
        return record.stage

    def open(self, *, threads: int = 1) -> OpenedSum:
        """Take the masks off the sum, and end it. Raises SumFailed if a secret can't be joined: nothing is opened."""
        try:
            left = self.leftover()
        except SumFailed as failed:
            self.fail(failed.detail, by_members=failed.by_members, liars=failed.liars)
            raise
        self.finish()
        return self.unmask(left, threads=threads)

    def leftover(self) -> LeftoverMasks:
        """The masks that are still on the sum. Raises SumFailed if a secret can't be joined; nothing is changed."""
        self.members.at("unmask")
        return leftover_masks(self.members)

    def unmask(self, left: LeftoverMasks, *, threads: int = 1) -> OpenedSum:
        """Take them off `total`, which is the opened sum from then on. Nothing that is stored changes."""
        apply_masks(self.total, left.plus, left.minus, threads=threads)
        return OpenedSum(self.total, left.survivors)

    def finish(self) -> None:
        """Mark the sum as opened, and forget what only opening needed. Raises SumStageClosed before stage unmask."""
        self.members.at("unmask")
        self.messages.forget()
        self.record.stage = "opened"

    def fail(self, reason: str, *, by_members: bool = False, liars: Sequence[int] = ()) -> None:
        """End the sum; what it holds is forgotten, but for who has lied. The arguments: as of `SumFailed`."""
        self.record.stage, self.record.reason, self.record.by_members = "failed", reason, by_members
        if liars:
            named = self.messages.pseudonyms(liars)
            self.record.liars += tuple(each for each in named if each not in self.record.liars)
        self.messages.forget()
        if self._total is not None:
            self._total[:] = 0

    @property
    def least(self) -> int:
        """The fewest survivors whose sum may be opened."""
        return max(self.record.threshold, self.record.terms.cohort_minimum)

    def _draw_graph(self) -> None:
        record, members = self.record, self.messages.count("keys")
        self._enough("advertised keys", members, record.terms.cohort_minimum)
        chosen = None
        if record.terms.graph == "sparse":
            chosen = choose_neighbourhood(members)
        graph = MaskGraph.sparse(random_circle(members), chosen.degree) if chosen else MaskGraph(members, members - 1)
        record.members, record.degree, record.circle = graph.members, graph.degree, graph.circle
        usual = chosen.threshold if chosen else max(2, required_threshold(record.terms, members))
        record.threshold = record.wanted_threshold or usual
        self._enough("advertised keys", graph.degree + 1, record.threshold)

    def _hear_complaints(self) -> None:
        """Leave out who is at odds with another, before anybody pays; the rest must be enough to be opened."""
        record, messages = self.record, self.messages
        sharers = messages.members("shares")
        heard = {member: Complaints.model_validate_json(body).members for member, body in messages.bodies("complaints")}
        # Of the shares of one secret so many may be false; in the sparse form, of those in the smallest neighbourhood.
        # Complaints are counted in sources: one machine's three places are one voice against an honest member.
        limit = max(1, tolerated(record.graph.fewest(sharers), record.threshold))
        verdict = judge(heard, limit, messages.sources() if any(heard.values()) else EACH_ITS_OWN)
        record.dropped = tuple(one for one in sharers if one not in heard or one in verdict.left_out)
        record.liars = messages.pseudonyms(verdict.liars) if verdict.liars else ()
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

    def _again(self, stage: MessageStage, member: int, received: str) -> bool:
        before = self.messages.sha256(stage, member)
        if before is not None and before != received:
            raise SumMessageConflict(stage)
        return before is not None

    def _enough(self, what: str, come: int, needed: int) -> None:
        if come < needed:
            raise SumFailed(f"{come} members {what}; {needed} are needed.")


def _digest(message: Message) -> str:
    return sha256(message.model_dump_json().encode()).hexdigest()


def _believe(check: Callable[[], None], field: str = "signature") -> None:
    try:
        check()
    except SecaggError as broken:
        raise SumMessageRefused(f"{str(broken).capitalize()}.", field=field) from broken


def zero_vector(length: int, dtype: np.dtype[Any]) -> RingVector:
    """A vector of zeros in pages that go back to the system with it.

    From the heap each of a server's threads would keep room for the largest vector it ever held.
    """
    # Private: shared ones, the default, take twice as long to be touched for the first time.
    pages = mmap.mmap(-1, max(1, length * dtype.itemsize), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, dtype=dtype, count=length)
