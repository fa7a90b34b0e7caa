"""The messages of a secure sum as rows of the database: one a device and stage, and nothing else is touched by one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, Select, bindparam, delete, func, insert, select

from backend.db.prepared import Prepared, as_list, listed
from backend.db.tables_federation import ParticipationRow, SumKeyRow, SumMessageRow
from backend.federation.secagg.messages import Entry, MessageStage
from backend.federation.secagg.sources import Sources

AT_ONCE = 16
"""Bodies read at once: of 500 members in the complete graph each has 47 KB."""

_OF_SUM = SumMessageRow.sum == bindparam("name")
_OF_STAGE = (_OF_SUM, SumMessageRow.stage == bindparam("at"))
_AMONG = listed("members", SumMessageRow.__table__.c.member)
_BODIES = (
    select(SumMessageRow.member, SumMessageRow.body)
    .where(*_OF_STAGE, SumMessageRow.member > bindparam("after"))
    .order_by(SumMessageRow.member)
    .limit(AT_ONCE)
)
_MEMBERS = select(SumMessageRow.member).where(*_OF_STAGE).order_by(SumMessageRow.member)
_PSEUDONYMS = select(SumMessageRow.pseudonym).where(*_OF_STAGE).order_by(SumMessageRow.member)


def _among(found: Select[*tuple[Any, ...]]) -> Prepared:
    def statement(dialect: Dialect) -> Select[*tuple[Any, ...]]:
        return found.where(_AMONG(dialect))

    return Prepared(statement)


NUMBER = Prepared(select(SumMessageRow.member).where(*_OF_STAGE, SumMessageRow.pseudonym == bindparam("pseudonym")))
LAST_NUMBER = Prepared(select(func.max(SumMessageRow.member)).where(*_OF_STAGE))
SHA256 = Prepared(select(SumMessageRow.sha256).where(*_OF_STAGE, SumMessageRow.member == bindparam("member")))
ADD = Prepared(insert(SumMessageRow).inline())
CLAIMED = Prepared(select(SumKeyRow.key).where(SumKeyRow.sum == bindparam("name"), SumKeyRow.key == bindparam("one")))
CLAIM = Prepared(insert(SumKeyRow).inline())
COUNT = Prepared(select(func.count()).where(*_OF_STAGE))
MEMBERS, MEMBERS_AMONG = Prepared(_MEMBERS), _among(_MEMBERS)
BODIES, BODIES_AMONG = Prepared(_BODIES), _among(_BODIES)
PSEUDONYMS_AMONG = _among(_PSEUDONYMS)
FORGET = (
    Prepared(delete(SumMessageRow).where(_OF_SUM)),
    Prepared(delete(SumKeyRow).where(SumKeyRow.sum == bindparam("name"))),
)


class SumRows:
    """`Messages` of one sum within a transaction. Whoever writes holds the sum's row."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self._name = connection, name

    def number(self, pseudonym: str) -> int | None:
        """As `Messages`."""
        found: int | None = self._ask(NUMBER, "keys", pseudonym=pseudonym)
        return found

    def last_number(self) -> int:
        """As `Messages`."""
        found: int | None = self._ask(LAST_NUMBER, "keys")
        return found or 0

    def sha256(self, stage: MessageStage, member: int) -> str | None:
        """As `Messages`."""
        found: str | None = self._ask(SHA256, stage, member=member)
        return found

    def add(self, entry: Entry) -> None:
        """As `Messages`."""
        ADD.run(
            self._connection,
            sum=self._name,
            stage=entry.stage,
            member=entry.member,
            pseudonym=entry.pseudonym,
            sha256=entry.sha256,
            body=entry.body,
        )

    def claim(self, keys: Sequence[bytes]) -> bool:
        """As `Messages`."""
        if any(CLAIMED.run(self._connection, name=self._name, one=key).first() for key in keys):
            return False
        for key in keys:
            CLAIM.run(self._connection, sum=self._name, key=key)
        return True

    def count(self, stage: MessageStage) -> int:
        """As `Messages`."""
        found: int = self._ask(COUNT, stage)
        return found

    def members(self, stage: MessageStage, among: Collection[int] | None = None) -> tuple[int, ...]:
        """As `Messages`."""
        asked, these = (MEMBERS, {}) if among is None else (MEMBERS_AMONG, self._these(among))
        return tuple(asked.run(self._connection, name=self._name, at=stage, **these).scalars())

    def bodies(self, stage: MessageStage, among: Collection[int] | None = None) -> Iterator[tuple[int, bytes]]:
        """As `Messages`."""
        asked, these = (BODIES, {}) if among is None else (BODIES_AMONG, self._these(among))
        last = 0
        while page := asked.run(self._connection, name=self._name, at=stage, after=last, **these).rows:
            yield from ((member, body) for member, body in page)
            last = page[-1][0]
            if len(page) < AT_ONCE:
                return

    def pseudonyms(self, members: Collection[int]) -> tuple[str, ...]:
        """As `Messages`."""
        found = PSEUDONYMS_AMONG.run(self._connection, name=self._name, at="keys", **self._these(members))
        return tuple(found.scalars())

    def sources(self) -> Sources:
        """As `Messages`; of a sum that is no round's, none is known."""
        number = re.match(r"round-(\d+)", self._name)
        if number is None:
            return Sources()
        found = (
            select(SumMessageRow.member, ParticipationRow.source)
            .join(ParticipationRow, ParticipationRow.pseudonym == SumMessageRow.pseudonym)
            .where(SumMessageRow.sum == self._name, SumMessageRow.stage == "keys")
            .where(ParticipationRow.round == int(number[1]), ParticipationRow.source.is_not(None))
        )
        return Sources({member: str(source) for member, source in self._connection.execute(found)})

    def forget(self) -> None:
        """As `Messages`."""
        for each in FORGET:
            each.run(self._connection, name=self._name)

    def _ask(self, asked: Prepared, stage: MessageStage, **values: Any) -> Any:
        return asked.run(self._connection, name=self._name, at=stage, **values).scalar()

    def _these(self, members: Collection[int]) -> dict[str, Any]:
        return {"members": as_list(self._connection, members)}
