"""Split a cohort at random into groups, each with a secure sum of its own (a part).

The split happens in the transaction that closes the `keys` stage. Each part has the terms of the whole sum, so the keys
that the devices signed stay valid. The cohort in these terms is the largest number of members of one sum, so a device
refuses a larger roster. A device's roster is its group, with new member numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.orm import Session

from backend.db.statements import Prepared, as_list, listed
from backend.db.tables import SecureSumRow, SumMessageRow
from backend.federation.errors import SumStageClosed, UnknownPseudonym
from backend.federation.secagg.graph import random_circle
from protocol.secagg import SumTerms

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
