"""Secure summation as the two ends speak of it (Bonawitz et al. 2017).

    stage      device sends          server answers, when the stage is closed
    keys       AdvertisedKeys        Roster       the members this device works with
    shares     SharedKeys            Shares       the boxes that were meant for it
    complaints Complaints            Sharers      U2: who shared its keys, but for those left out over complaints
    masked     ring elements, raw    Survivors    U3: whose masked vectors arrived
    agree      Agreement             Agreements   (active adversary only)
    unmask     RevealedShares        nothing: the sum is the server's

A device is a number within the round, 1 to n. With the complete graph everybody works with everybody; in the sparse
form (Bell et al. 2020) a roster holds one's neighbours only, and nothing else changes.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from device_app.wire.ids import Message
from device_app.wire.ring import FixedPoint
from device_app.wire.shamir import SHARE_BYTES

MEMBERS_LIMIT = 10_000
LENGTH_LIMIT = 2**27
BOX_BYTES = 8 + 2 * SHARE_BYTES + 16
KEY_BYTES = 32
SIGNATURE_BYTES = 64
SPARSE_FROM = 101
"""From so many devices on each masks with about log n others (Bell et al. 2020)."""
TrustMode = Literal["semi_honest", "active"]
Graph = Literal["complete", "sparse"]
SumMode = Literal["semi_honest", "active", "by_cohort"]
"""Of a protection. by_cohort: active on the complete graph, semi_honest in the sparse form."""
NOISE_REACH = 10.0
"""Standard deviations of the opened sum's noise for which the ring has room: beyond them lie fewer than 1 in 10^23."""

MemberNumber = Annotated[int, Field(ge=1, le=MEMBERS_LIMIT)]
Key = Annotated[bytes, Field(min_length=KEY_BYTES, max_length=KEY_BYTES)]
Signature = Annotated[bytes, Field(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
MemberNumbers = Annotated[tuple[MemberNumber, ...], Field(max_length=MEMBERS_LIMIT)]


class SecaggError(ValueError):
    """A message that an honest other end would not have sent; says what is wrong."""


class SumTerms(Message):
    """What a secure sum is, in the manifest of its round; both ends hold every later message against it.

    mode: 'semi_honest' trusts the server to follow the protocol and hides single vectors from what it sees; 'active'
    adds the consistency round, so that a server that lies about who dropped out learns nothing either.
    """

    round: str = Field(max_length=80)
    mode: TrustMode = "semi_honest"
    graph: Graph = "complete"
    cohort: MemberNumber = Field(description="n, the most members")
    cohort_minimum: int = Field(ge=2, le=MEMBERS_LIMIT, description="Below so many members a device withdraws.")
    length: int = Field(ge=1, le=LENGTH_LIMIT, description="Ring elements of one vector.")
    bits: Literal[8, 16, 32, 64] = 32
    fraction_bits: int = Field(ge=0, le=62, description="f")
    bound: float = Field(gt=0, description="X: no encoded value is larger")
    headroom: float = Field(default=0.0, ge=0, description="Steps kept free for noise inside the sum.")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.cohort_minimum > self.cohort:
            raise ValueError(f"cohort_minimum: at most the cohort of {self.cohort}, got {self.cohort_minimum}")
        if self.mode == "active" and self.graph == "sparse":
            raise ValueError(
                "graph: the sparse form is for a server that follows the protocol; 'active' needs 'complete'"
            )
        self.fixed_point()
        return self

    @classmethod
    def form(cls, mode: SumMode, graph: str, cohort: int, cohort_limit: int) -> tuple[TrustMode, Graph]:
        """Mode and graph for a cohort where a protection leaves them to its size: sparse from SPARSE_FROM on.

        Raises ValueError for a cohort above `cohort_limit`, which the ring has no room for.
        """
        if cohort > cohort_limit:
            raise ValueError(f"cohort: at most {cohort_limit}, got {cohort}")
        sparse = graph == "by_cohort" and cohort >= SPARSE_FROM
        by_cohort: TrustMode = "semi_honest" if sparse else "active"
        return by_cohort if mode == "by_cohort" else mode, "sparse" if sparse else "complete"

    def fixed_point(self) -> FixedPoint:
        """The code of values. Raises RingError if a sum could overflow, which the terms therefore never do."""
        return FixedPoint(self.bits, self.fraction_bits, self.bound, self.cohort, self.headroom)

    def digest(self) -> bytes:
        """SHA-256 of these terms: what keys and signatures of the round are bound to."""
        return sha256(self.model_dump_json().encode()).digest()

    @property
    def vector_bytes(self) -> int:
        """Size of a masked vector on the wire."""
        return self.length * self.bits // 8


class AdvertisedKeys(Message):
    """Stage keys: two X25519 keys and the Ed25519 key that signs them for this round only."""

    encryption_key: Key = Field(description="c_u")
    mask_key: Key = Field(description="s_u")
    verify_key: Key
    signature: Signature


class RosterEntry(Message):
    """One member with its keys."""

    member: MemberNumber
    keys: AdvertisedKeys


class Roster(Message):
    """Answer of stage keys: the members this device works with, itself among them, in ascending order."""

    round: str = Field(max_length=80)
    me: MemberNumber
    cohort: MemberNumber = Field(description="|U1|, all members of the round")
    threshold: MemberNumber = Field(description="t: shares that give a secret")
    members: tuple[RosterEntry, ...] = Field(min_length=2, max_length=MEMBERS_LIMIT)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        numbers = self.numbers
        _ascending("members", numbers)
        if self.me not in numbers:
            raise ValueError(f"me: {self.me} is not among the members")
        if len(numbers) > self.cohort:
            raise ValueError(f"members: at most the cohort of {self.cohort}, got {len(numbers)}")
        return self

    @property
    def numbers(self) -> tuple[int, ...]:
        """The members' numbers."""
        return tuple(entry.member for entry in self.members)

    def digest(self) -> bytes:
        """SHA-256 of what every member of a complete graph must have been told alike."""
        told = self.model_copy(update={"me": 1})
        return sha256(told.model_dump_json().encode()).digest()


class Box(Message):
    """An encrypted pair of shares, to or from another member."""

    member: MemberNumber
    box: bytes = Field(min_length=BOX_BYTES, max_length=BOX_BYTES)


class SharedKeys(Message):
    """Stage shares: a box for every other member of the roster, and a commitment to the self mask's seed.

    The commitment (a hash of 32 random bytes) lets the server notice false shares instead of publishing garbage.
    """

    seed_commitment: Key
    boxes: tuple[Box, ...] = Field(min_length=1, max_length=MEMBERS_LIMIT)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("boxes", tuple(box.member for box in self.boxes))
        return self


class Shares(Message):
    """Answer of stage shares: the boxes for this device."""

    boxes: tuple[Box, ...] = Field(max_length=MEMBERS_LIMIT)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("boxes", tuple(box.member for box in self.boxes))
        return self


class Complaints(Message):
    """Stage complaints: members whose boxes this device could not open, mostly none; no key and no share is in it."""

    members: MemberNumbers

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("members", self.members)
        return self


class Sharers(Message):
    """Answer of stage complaints: U2, as far as this device works with it. Nobody in it has complained of another."""

    members: MemberNumbers

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("members", self.members)
        return self


class Survivors(Message):
    """Answer of stage masked: U3, as far as this device works with it."""

    members: MemberNumbers

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("members", self.members)
        return self


class Agreement(Message):
    """Stage agree: this device's signature on the round, its roster and U3."""

    signature: Signature


class MemberSignature(Message):
    """Another member's agreement."""

    member: MemberNumber
    signature: Signature


class Agreements(Message):
    """Answer of stage agree."""

    signatures: tuple[MemberSignature, ...] = Field(max_length=MEMBERS_LIMIT)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("signatures", tuple(one.member for one in self.signatures))
        return self


class RevealedShare(Message):
    """This device's share of one secret of one member."""

    member: MemberNumber
    share: bytes = Field(min_length=SHARE_BYTES, max_length=SHARE_BYTES)


class RevealedShares(Message):
    """Stage unmask: shares of the self-mask seeds of survivors and of the mask keys of the dropped.

    A message that holds both for one member can't be made.
    """

    seeds: tuple[RevealedShare, ...] = Field(max_length=MEMBERS_LIMIT)
    keys: tuple[RevealedShare, ...] = Field(max_length=MEMBERS_LIMIT)

    @model_validator(mode="after")
    def _never_both(self) -> Self:
        seeds, keys = tuple(one.member for one in self.seeds), tuple(one.member for one in self.keys)
        _ascending("seeds", seeds)
        _ascending("keys", keys)
        if both := sorted(set(seeds) & set(keys)):
            raise ValueError(f"keys: member {both[0]} is among the seeds too; both would open its vector")
        return self


def _ascending(field: str, numbers: tuple[int, ...]) -> None:
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        raise ValueError(f"{field}: member numbers must ascend, each once")


def required_threshold(terms: SumTerms, holders: int) -> int:
    """The least threshold a device accepts when so many members hold a secret's shares (Bonawitz 2017, section 6).

    Where everybody masks with everybody. Active server: floor(2n/3) + 1, which with fewer than n/3 colluding members
    keeps 2t > n + n_C: no set of answers gives both secrets of anybody. Server that follows the protocol: a majority.
    In the sparse form t is that of `wire.neighbourhood`, neither more nor less.
    """
    return 2 * holders // 3 + 1 if terms.mode == "active" else holders // 2 + 1
