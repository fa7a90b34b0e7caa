"""Messages and parameters of secure sums (Bonawitz et al. 2017; sparse: Bell et al. 2020).

    stage      device sends          server answers, when the stage is closed
    keys       AdvertisedKeys        Roster       the members this device works with
    shares     SharedKeys            Shares       the boxes that were meant for it
    complaints Complaints            Sharers      U2: who shared its keys, except those left out over complaints
    masked     ring elements, raw    Survivors    U3: whose masked vectors arrived
    agree      Agreement             Agreements   (mode active only)
    unmask     RevealedShares        nothing: only the server gets the sum

A device is a number within the round, 1 to n. With the complete graph every device works with every other; in the
sparse form a roster lists only the device's neighbours; everything else is the same.

The server, which draws the sparse graph, and the device, which checks it, compute the same numbers of neighbours and
shares. A member shares its two secrets with its closed neighbourhood: itself and k neighbours, of which c may collude
with the server. A fraction gamma of all members colludes and a fraction delta drops out. Four conditions must hold:

    E1  no honest member has more than c colluding neighbours        c is never below 10: see below
    E2  the honest survivors are connected                           else an honest server's sum falls into parts
    E3  every member has at least t surviving neighbours             else the sum can't be opened at all
    E4  2 t > k + 1 + c                                              else both secrets of a member can be opened

An honest holder reveals one of the two secrets, a colluding one both, so both can be opened only if 2 t <= k + 1 + c.
E4 alone isn't enough: a server may open a member's seed and the mask keys of all its neighbours instead. So a member
reveals nothing before t members of its closed neighbourhood have signed that it is alive. By E4 the mask key of a
member that reveals can't be opened. `SumParticipant` states the consequences, and docs/decisions/004 the reasons.

E1 and E2 each fail with probability at most 2^-sigma, E3 with at most 2^-eta. E1 and E3 are tails of hypergeometric
distributions and a union bound over the members, as in the paper. For E2 we bound the probability of two gaps of k/2
consecutive removed members, since it takes two gaps to cut a circle. E1's tail is that of a random graph. A server that
chooses the graph freely can place all colluding members around one target; therefore c is at least `NEAR_ONE`.

All arithmetic is in integers, so that rounding can't make the two ends disagree.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from protocol.ids import Message
from protocol.ring import FixedPoint
from protocol.shamir import SHARE_BYTES

NEAR_ONE = 10
"""Colluding members that may all be neighbours of one member, wherever the server places them."""
COMPANY = 5
"""The fewest honest members of any sum that a malicious server can open."""


@dataclass(frozen=True)
class Assumptions:
    """The attacks and dropouts that the sparse form tolerates.

    Args:
        colluding: gamma, the fraction of members that may collude with the server.
        dropping: delta, the fraction of members that may drop out at any stage.
        privacy_bits: sigma.
        success_bits: eta.
    """

    colluding: float = 0.02
    dropping: float = 0.17
    privacy_bits: int = 40
    success_bits: int = 20

    def __post_init__(self) -> None:
        if min(self.colluding, self.dropping) < 0 or self.colluding + self.dropping >= 1:
            raise ValueError(
                f"colluding + dropping: must be below 1 together, got {self.colluding} and {self.dropping}"
            )


@dataclass(frozen=True)
class Neighbourhood:
    """Parameters of the sparse graph: k neighbours each, threshold t, and at most c colluding neighbours."""

    degree: int
    threshold: int
    colluding: int

    @property
    def sharers(self) -> int:
        """The fewest neighbours, itself included, with whom a member masks its vector.

        Of the holders that reveal its seed, t - c or more are honest, and all but k + 1 - `sharers` of these mask with
        it. So any opened sum includes at least `COMPANY` honest members.
        """
        return max(self.threshold, self.degree + 1 + self.colluding + COMPANY - self.threshold)


USUAL = Assumptions()
"""The assumptions of both ends."""


@lru_cache(maxsize=256)
def choose_neighbourhood(members: int, assumed: Assumptions = USUAL) -> Neighbourhood | None:
    """Return the smallest even k, with its t and c, that meets the assumptions.

    None for the complete graph.
    """
    if members < SPARSE_FROM:
        return None
    for degree in range(2, members - 1, 2):
        colluding = _colluding_neighbours(members, degree, assumed)
        chosen = Neighbourhood(degree, (degree + 1 + colluding) // 2 + 1, colluding)
        if (
            chosen.sharers <= degree + 1
            and _hangs_together(members, degree, assumed)
            and _can_be_opened(members, degree, chosen.threshold, assumed)
        ):
            return chosen
    return None


def _colluding_neighbours(members: int, degree: int, assumed: Assumptions) -> int:
    """Return the least c that meets E1, at least 10.

    E1: members P(more than c of k neighbours collude) <= 2^-sigma.
    """
    others, colluding = members - 1, _part(assumed.colluding, members)
    ways, tail = math.comb(others, degree), 0
    for found in range(min(degree, colluding), NEAR_ONE, -1):
        tail += math.comb(colluding, found) * math.comb(others - colluding, degree - found)
        if (members * tail) << assumed.privacy_bits > ways:
            return found
    return NEAR_ONE


def _hangs_together(members: int, degree: int, assumed: Assumptions) -> bool:
    """Return whether E2 holds.

    It bounds n^2 / 2 pairs of gaps, each of k/2 members, times the chance that k given members are all removed.
    """
    removed = _part(assumed.colluding, members) + _part(assumed.dropping, members)
    return (members**2 * math.perm(removed, degree)) << assumed.privacy_bits <= 2 * math.perm(members, degree)


def _can_be_opened(members: int, degree: int, threshold: int, assumed: Assumptions) -> bool:
    """E3: members P(fewer than t of k neighbours survive) <= 2^-eta."""
    others, surviving = members - 1, members - _part(assumed.dropping, members) - 1
    tail = sum(math.comb(surviving, one) * math.comb(others - surviving, degree - one) for one in range(threshold))
    return (members * tail) << assumed.success_bits <= math.comb(others, degree)


def _part(share: float, members: int) -> int:
    return math.ceil(share * members)


MEMBERS_LIMIT = 10_000
LENGTH_LIMIT = 2**27
BOX_BYTES = 8 + 2 * SHARE_BYTES + 16
KEY_BYTES = 32
SIGNATURE_BYTES = 64
SPARSE_FROM = 101
"""With this many devices or more, each masks with about log n others (Bell et al. 2020)."""
TrustMode = Literal["semi_honest", "active"]
Graph = Literal["complete", "sparse"]
NOISE_REACH = 10.0
"""Standard deviations of the opened sum's noise that the ring has room for: fewer than 1 in 10^23 draws are larger."""

MemberNumber = Annotated[int, Field(ge=1, le=MEMBERS_LIMIT)]
Key = Annotated[bytes, Field(min_length=KEY_BYTES, max_length=KEY_BYTES)]
Signature = Annotated[bytes, Field(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
MemberNumbers = Annotated[tuple[MemberNumber, ...], Field(max_length=MEMBERS_LIMIT)]


class SecaggError(ValueError):
    """A message that an honest peer would not have sent; the error says what is wrong."""


class SumTerms(Message):
    """The terms of a secure sum, in the manifest of its round.

    Both ends check every later message against them. mode: 'semi_honest' trusts the server to follow the protocol and
    hides single vectors from it; 'active' adds the consistency round, so that a server that lies about who dropped out
    learns nothing either.
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
        self.fixed_point()
        return self

    @staticmethod
    def graph_of(graph: str, cohort: int, cohort_limit: int) -> Graph:
        """Return the graph to use for a sum.

        If the protection does not choose a graph, it is sparse for SPARSE_FROM devices or more. Raises ValueError for a
        cohort above `cohort_limit`, which would not fit the ring.
        """
        if cohort > cohort_limit:
            raise ValueError(f"cohort: at most {cohort_limit}, got {cohort}")
        sparse = graph == "by_cohort" and cohort >= SPARSE_FROM
        return "sparse" if sparse else "complete"

    def fixed_point(self) -> FixedPoint:
        """Return the encoding of values.

        Raises RingError if a sum could overflow; valid terms never do.
        """
        return FixedPoint(self.bits, self.fraction_bits, self.bound, self.cohort, self.headroom)

    def digest(self) -> bytes:
        """Return the SHA-256 of these terms, to which keys and signatures of the round are bound."""
        return sha256(self.model_dump_json().encode()).digest()

    @property
    def vector_bytes(self) -> int:
        """Size of a masked vector on the wire."""
        return self.length * self.bits // 8


class AdvertisedKeys(Message):
    """Sent in the `keys` stage: two X25519 keys, and the Ed25519 key that signs them.

    The signature is for this round only.
    """

    encryption_key: Key = Field(description="c_u")
    mask_key: Key = Field(description="s_u")
    verify_key: Key
    signature: Signature


class RosterEntry(Message):
    """One member with its keys."""

    member: MemberNumber
    keys: AdvertisedKeys


class Roster(Message):
    """Answer in the `keys` stage: the members this device works with, itself included.

    They are in ascending order.
    """

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

    @property
    def is_whole(self) -> bool:
        """Whether it names every member of the round, as on the complete graph."""
        return len(self.members) == self.cohort

    def digest(self) -> bytes:
        """Return the SHA-256 of what every member of a complete graph must have received."""
        common = self.model_copy(update={"me": 1})
        return sha256(common.model_dump_json().encode()).digest()


class Box(Message):
    """An encrypted pair of shares, to or from another member."""

    member: MemberNumber
    box: bytes = Field(min_length=BOX_BYTES, max_length=BOX_BYTES)


class SharedKeys(Message):
    """Sent in the `shares` stage: a box for every other member of the roster.

    It also has a commitment to the self mask's seed. The commitment (a hash of 32 random bytes) lets the server notice
    false shares instead of publishing garbage.
    """

    seed_commitment: Key
    boxes: tuple[Box, ...] = Field(min_length=1, max_length=MEMBERS_LIMIT)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("boxes", tuple(box.member for box in self.boxes))
        return self


class Shares(Message):
    """Answer in the `shares` stage: the boxes for this device."""

    boxes: tuple[Box, ...] = Field(max_length=MEMBERS_LIMIT)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("boxes", tuple(box.member for box in self.boxes))
        return self


class Complaints(Message):
    """Sent in the `complaints` stage: members whose boxes this device could not open.

    Usually there are none. It contains no key and no share.
    """

    members: MemberNumbers

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("members", self.members)
        return self


class Sharers(Message):
    """Answer in the `complaints` stage: the members of U2 that this device works with.

    No member of it has complained about another.
    """

    members: MemberNumbers

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("members", self.members)
        return self


class Survivors(Message):
    """Answer in the `masked` stage: the members of U3 that this device works with."""

    members: MemberNumbers

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _ascending("members", self.members)
        return self


class Agreement(Message):
    """Sent in the `agree` stage: this device's signature on the round, its roster and U3.

    In the sparse form it signs the round, its number and U3 as `alive_bits`.
    """

    signature: Signature


class MemberSignature(Message):
    """Another member's agreement.

    alive: U3 as that member received it, in the sparse form.
    """

    member: MemberNumber
    signature: Signature
    alive: bytes | None = Field(default=None, min_length=1, max_length=MEMBERS_LIMIT // 8)

    def lists_as_alive(self, member: int) -> bool:
        """Return whether the signer says that this member's masked vector has arrived."""
        byte, bit = divmod(member - 1, 8)
        return self.alive is not None and byte < len(self.alive) and bool(self.alive[byte] >> bit & 1)


def alive_bits(members: Sequence[int], cohort: int) -> bytes:
    """One bit per member of the cohort; the lowest bit of the first byte is member 1's."""
    bits = sum(1 << (member - 1) for member in members)
    return bits.to_bytes((cohort + 7) // 8, "little")


class Agreements(Message):
    """Answer in the `agree` stage: the signatures of all members, or of the neighbours.

    It is the neighbours' signatures in the sparse form.
    """

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
    """Sent in the `unmask` stage: shares of the survivors' seeds and of the dropped members' keys.

    The constructor refuses a message that holds both for one member.
    """

    seeds: tuple[RevealedShare, ...] = Field(max_length=MEMBERS_LIMIT)
    keys: tuple[RevealedShare, ...] = Field(max_length=MEMBERS_LIMIT)

    @model_validator(mode="after")
    def _never_both(self) -> Self:
        seeds, keys = tuple(one.member for one in self.seeds), tuple(one.member for one in self.keys)
        _ascending("seeds", seeds)
        _ascending("keys", keys)
        if both := sorted(set(seeds) & set(keys)):
            raise ValueError(f"keys: member {both[0]} is among the seeds too; together they would open its vector")
        return self


def _ascending(field: str, numbers: tuple[int, ...]) -> None:
    for earlier, later in pairwise(numbers):
        if later <= earlier:
            raise ValueError(f"{field}: member numbers must be strictly increasing; {later} follows {earlier}")


def required_threshold(terms: SumTerms, holders: int) -> int:
    """Return the least threshold that a device accepts for this many holders.

    Source: Bonawitz 2017, section 6. For the complete graph with mode active: floor(2n/3) + 1, which keeps 2t > n + n_C
    with fewer than n/3 colluding members, so that no set of answers gives both secrets of any member. With a server
    that follows the protocol: a majority. In the sparse form t is exactly that of `choose_neighbourhood`.
    """
    return 2 * holders // 3 + 1 if terms.mode == "active" else holders // 2 + 1
