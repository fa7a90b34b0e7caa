"""The mask graph of a secure sum, and the network addresses of its members.

Either every pair of members shares a mask, or the pairs form the sparse graph of Bell et al. 2020: a Harary graph (a
circle on which each member is joined to the next k/2 on either side) over a random permutation of the members. Its
degree k and its threshold follow from the number of members (`protocol.secagg`).

All members of one network address may be one machine. A round gives an address several places (`places_per_address`),
so trust is counted in addresses and not in members: otherwise one machine with three places would outvote the honest
members of a small sum.

A cohort may be split at random into groups, each with a secure sum of its own (a part). The split happens in the
transaction that closes the `keys` stage. Each part has the terms of the whole sum, so the keys that the devices signed
stay valid. The cohort in these terms is the largest number of members of one sum, so a device refuses a larger roster.
A device's roster is its group, with new member numbers.
"""

from __future__ import annotations

import math
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.orm import Session

from backend.db.statements import Prepared, as_list, listed
from backend.db.tables import SecureSumRow, SumMessageRow
from backend.federation.errors import SumStageClosed, UnknownPseudonym
from backend.federation.secagg.decoding import tolerated
from protocol.secagg import SumTerms, choose_neighbourhood, required_threshold

SPARE: Final = 1.2
"""Members of a part for each required survivor: of twelve members two may drop out if ten are needed."""
_PART_OF = Prepared(
    lambda dialect: select(SumMessageRow.sum).where(
        listed("names", SumMessageRow.__table__.c.sum)(dialect),
        SumMessageRow.stage == "keys",
        SumMessageRow.pseudonym == bindparam("pseudonym"),
    )
)
_FAILED = Prepared(
    lambda dialect: select(SecureSumRow.name).where(
        listed("names", SecureSumRow.__table__.c.name)(dialect), SecureSumRow.stage == "failed"
    )
)


class CohortSplit(BaseModel):
    """How to split a cohort into parts.

    Args:
        members: the fewest survivors of a part; the terms' cohort_minimum if that is larger.
        parts: the fewest parts that are useful; with fewer the cohort stays one sum.
        left: how many parts must not have failed.
        cohort: devices of all parts together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    members: int = Field(ge=2)
    parts: int = Field(ge=2)
    left: int = Field(ge=1)
    cohort: int = Field(ge=1)

    def parts_of(self, cohort: int, terms: SumTerms) -> int:
        """Return the number of parts that a cohort of this size is split into; 0 if it stays one sum."""
        parts = cohort // self._wanted(terms.cohort_minimum)
        return parts if parts >= self.parts else 0

    def largest(self, cohort: int, cohort_minimum: int) -> int:
        """Return the largest number of members of one sum.

        This is the size of a part, or of a whole cohort that is one device too small to be split.
        """
        return min(cohort, self.parts * self._wanted(cohort_minimum) - 1)

    def _wanted(self, cohort_minimum: int) -> int:
        return math.ceil(SPARE * max(self.members, cohort_minimum))


def threshold_of(terms: SumTerms, members: int) -> int:
    """Return t for this many members, or neighbours: the number of shares from which a secret can be opened."""
    chosen = choose_neighbourhood(members) if terms.graph == "sparse" else None
    return chosen.threshold if chosen else max(2, required_threshold(terms, members))


def part_names(name: str, parts: int) -> tuple[str, ...]:
    """Return the names of the parts: round-3 -> round-3.1, round-3.2, ..."""
    return tuple(f"{name}.{number}" for number in range(1, parts + 1))


def part_rows(session: Session, name: str, parts: int, *, to_change: bool = False) -> Sequence[SecureSumRow]:
    """Return the rows of the parts in the order of their names; none for a sum that isn't split."""
    if not parts:
        return ()
    found = [session.get_one(SecureSumRow, each, with_for_update=to_change) for each in part_names(name, parts)]
    return tuple(found)


def part_of(connection: Connection, name: str, parts: int, pseudonym: str) -> str:
    """Return the name of the part that this pseudonym is a member of.

    Raises UnknownPseudonym, or SumStageClosed if any part has failed: it may have been this member's, since a part that
    ends forgets its members.
    """
    names = as_list(connection, part_names(name, parts))
    found: str | None = _PART_OF.run(connection, names=names, pseudonym=pseudonym).scalar()
    if found is not None:
        return found
    if _FAILED.run(connection, names=names).first() is not None:
        raise SumStageClosed("one under way", "failed")
    raise UnknownPseudonym


def deal(session: Session, row: SecureSumRow, members: int, parts: int, blank: str) -> Sequence[SecureSumRow]:
    """Move the received keys at random to sums of their own.

    `blank` is the initial record of each.

    Formal guarantees: the assignment of members to groups and numbers is a uniform permutation from the system's
    cryptographic generator, drawn after the last key was received: no member can choose its group.
    """
    fresh = [
        SecureSumRow(
            name=name, stage="keys", record=blank, total=None, stage_sec=row.stage_sec, closes_at=row.closes_at
        )
        for name in part_names(row.name, parts)
    ]
    session.add_all(fresh)
    session.flush()
    for place, member in enumerate(random_circle(members)):
        session.execute(
            update(SumMessageRow)
            .where(SumMessageRow.sum == row.name, SumMessageRow.stage == "keys", SumMessageRow.member == member)
            .values(sum=fresh[place % parts].name, member=place // parts + 1)
            .execution_options(synchronize_session=False)
        )
    return fresh


@dataclass(frozen=True)
class Sources:
    """The network address (source) of each member.

    A member without an entry is a source of its own.
    """

    known: Mapping[int, Hashable] = field(default_factory=dict)

    def of(self, members: Collection[int]) -> frozenset[Hashable]:
        """Return the distinct sources of these members."""
        return frozenset(self.known.get(member, member) for member in members)

    def by_source(self, members: Collection[int]) -> list[frozenset[int]]:
        """Return these members grouped by source, the largest group first, then by lowest member."""
        found: defaultdict[Hashable, set[int]] = defaultdict(set)
        for member in members:
            found[self.known.get(member, member)].add(member)
        return sorted(map(frozenset, found.values()), key=lambda group: (-len(group), min(group)))

    def within(self, members: Collection[int], limit: int) -> int:
        """Return the largest k such that any k sources have at most `limit` of these members."""
        held = accumulate(len(group) for group in self.by_source(members))
        return sum(many <= limit for many in held)

    def malicious_at_most(self, holders: Collection[int], threshold: int) -> int:
        """Return how many sources may send false shares while the secret can still be found.

        All holders from these sources may be malicious. This holds for any sources that together hold no more shares
        than decoding corrects. It also holds for one source of any size if `threshold` shares remain without it, since
        the secret is also tried without each source in turn. The holders are those of `secagg.unmask`, where
        at least one false share is corrected.

        Formal guarantees: while no more sources than this are malicious, a secret that isn't found was shared falsely
        by its owner.
        """
        corrected = self.within(holders, tolerated(len(holders), threshold))
        left = len(holders) - max(map(len, self.by_source(holders)), default=0)
        return max(corrected, int(left >= threshold))


EACH_ITS_OWN = Sources()


_NUMBER = np.dtype("<u2")


def random_circle(members: int, draw: Callable[[int], int] = secrets.randbelow) -> tuple[int, ...]:
    """Return the members 1 to n in random order (Fisher-Yates).

    The random numbers are the system's cryptographic ones.
    """
    order = list(range(1, members + 1))
    for last in range(members - 1, 0, -1):
        other = draw(last + 1)
        order[last], order[other] = order[other], order[last]
    return tuple(order)


@dataclass(frozen=True)
class MaskGraph:
    """The graph whose edges are the pairs of members that share a mask.

    Args:
        members: n; they are numbered from 1.
        degree: k; a value of n - 1 or more means the complete graph.
        circle: the members in their order on the circle, two bytes each, little-endian; ignored for the complete
            graph.
    """

    members: int
    degree: int
    circle: bytes = b""

    @classmethod
    def sparse(cls, circle: Sequence[int], degree: int) -> MaskGraph:
        """Return the Harary graph on a circle."""
        return cls(len(circle), degree, np.array(circle, dtype=_NUMBER).tobytes())

    @property
    def is_complete(self) -> bool:
        """Whether every pair of members shares a mask."""
        return self.degree >= self.members - 1

    def closed(self, member: int) -> tuple[int, ...]:
        """Return a member and its neighbours, ascending, in time proportional to k."""
        if self.is_complete:
            return tuple(range(1, self.members + 1))
        return tuple(_closed(self.circle, self.degree)[member - 1].tolist())

    def place_among(self, member: int, other: int) -> int:
        """Return how many of a member's neighbours, without the member itself, come before `other`."""
        if self.is_complete:
            return other - 1 - (other > member)
        return int(_closed(self.circle, self.degree)[member - 1].searchsorted(other)) - (other > member)

    def fewest(self, chosen: Collection[int]) -> int:
        """Return the smallest number of chosen members in any closed neighbourhood."""
        if self.is_complete:
            return len(chosen)
        circle = np.frombuffer(self.circle, dtype=_NUMBER)
        hits = np.isin(circle, np.fromiter(chosen, dtype=_NUMBER))
        width = self.degree + 1
        around = np.concatenate(([0], np.cumsum(np.concatenate((hits, hits[: width - 1])))))
        return int((around[width:] - around[:-width]).min())


@lru_cache(maxsize=8)
def _closed(circle: bytes, degree: int) -> NDArray[np.uint16]:
    """Return [n, k + 1], every member with its neighbours, ascending.

    The last circles used are cached. A member that opens its boxes needs this for all of its neighbours.
    """
    around = np.frombuffer(circle, dtype=_NUMBER)
    reach = np.arange(-(degree // 2), degree // 2 + 1)
    near = around.take(np.arange(around.size)[:, None] + reach, mode="wrap")
    near.sort(axis=1)
    closed = np.empty_like(near)
    closed[around - 1] = near
    return closed
