"""A cohort split into groups drawn by chance, each with a secure sum of its own: the parts of the cohort's sum.

It happens when stage keys closes, in that transaction. A part has the terms of the whole, so the keys that devices have
signed hold for it, and a device sees a round of fewer members: its roster is its group, complete and renumbered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.orm import Session

from backend.db.prepared import Prepared, as_list, listed
from backend.db.tables_federation import SecureSumRow, SumMessageRow
from backend.federation.errors import UnknownPseudonym
from backend.federation.secagg.errors import SumStageClosed
from backend.federation.secagg.graph import random_circle
from device_app.wire.secagg import SumTerms

SPARE: Final = 1.2
"""Members of a part for each that must survive: of twelve two may vanish where ten are needed."""
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
    """How a cohort is to be split.

    Args:
        members: the fewest survivors of a part; the terms' cohort_minimum if that is more.
        parts: fewer than so many are no use: one sum remains then.
        left: parts that must not have failed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    members: int = Field(ge=2)
    parts: int = Field(ge=2)
    left: int = Field(ge=1)

    def parts_of(self, cohort: int, terms: SumTerms) -> int:
        """How many parts so many devices make; 0: one sum."""
        wanted = math.ceil(SPARE * max(self.members, terms.cohort_minimum))
        parts = cohort // wanted
        return parts if parts >= self.parts else 0


def part_names(name: str, parts: int) -> tuple[str, ...]:
    """round-3 -> round-3.1, round-3.2, ..."""
    return tuple(f"{name}.{number}" for number in range(1, parts + 1))


def part_rows(session: Session, name: str, parts: int, *, to_change: bool = False) -> Sequence[SecureSumRow]:
    """In the order of their names; none for a sum that isn't split."""
    if not parts:
        return ()
    found = [session.get_one(SecureSumRow, each, with_for_update=to_change) for each in part_names(name, parts)]
    return tuple(found)


def part_of(connection: Connection, name: str, parts: int, pseudonym: str) -> str:
    """The name of the part that this pseudonym is a member of.

    Raises UnknownPseudonym, or SumStageClosed if a part has failed, which may have been its: a part that ends forgets
    its members.
    """
    names = as_list(connection, part_names(name, parts))
    found: str | None = _PART_OF.run(connection, names=names, pseudonym=pseudonym).scalar()
    if found is not None:
        return found
    if _FAILED.run(connection, names=names).first() is not None:
        raise SumStageClosed("one under way", "failed")
    raise UnknownPseudonym


def deal(session: Session, row: SecureSumRow, members: int, parts: int, blank: str) -> Sequence[SecureSumRow]:
    """Move the keys that have come to sums of their own, by chance; `blank` is the record of each.

    Formal guarantees: who is with whom, and under which number, is a uniform permutation from the system's
    cryptographic generator, drawn after the last key has come: no member chooses its group.
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
