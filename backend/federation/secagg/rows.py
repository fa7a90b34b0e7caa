"""The messages of a secure sum as rows of the database: one a device and stage, and nothing else is touched by one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session

from backend.db.chunks import among as listed
from backend.db.tables_federation import ParticipationRow, SumKeyRow, SumMessageRow
from backend.federation.secagg.messages import Entry, MessageStage
from backend.federation.secagg.sources import Sources

AT_ONCE = 64
"""Bodies read at once: of 500 members in the complete graph each has 47 KB."""


class SumRows:
    """`Messages` of one sum within a session. Whoever writes holds the sum's row."""

    def __init__(self, session: Session, name: str) -> None:
        self._session, self._name = session, name

    def number(self, pseudonym: str) -> int | None:
        """As `Messages`."""
        return self._session.scalar(
            select(SumMessageRow.member).where(*self._of("keys"), SumMessageRow.pseudonym == pseudonym)
        )

    def last_number(self) -> int:
        """As `Messages`."""
        return self._session.scalar(select(func.max(SumMessageRow.member)).where(*self._of("keys"))) or 0

    def sha256(self, stage: MessageStage, member: int) -> str | None:
        """As `Messages`."""
        return self._session.scalar(
            select(SumMessageRow.sha256).where(*self._of(stage), SumMessageRow.member == member)
        )

    def add(self, entry: Entry) -> None:
        """As `Messages`."""
        self._session.add(
            SumMessageRow(
                sum=self._name,
                stage=entry.stage,
                member=entry.member,
                pseudonym=entry.pseudonym,
                sha256=entry.sha256,
                body=entry.body,
            )
        )
        self._session.flush()

    def claim(self, keys: Sequence[bytes]) -> bool:
        """As `Messages`."""
        held = select(func.count()).where(SumKeyRow.sum == self._name, SumKeyRow.key.in_(keys))
        if self._session.scalar(held):
            return False
        self._session.add_all(SumKeyRow(sum=self._name, key=key) for key in keys)
        self._session.flush()
        return True

    def count(self, stage: MessageStage) -> int:
        """As `Messages`."""
        return self._session.scalar(select(func.count()).where(*self._of(stage))) or 0

    def members(self, stage: MessageStage, among: Collection[int] | None = None) -> tuple[int, ...]:
        """As `Messages`."""
        found = select(SumMessageRow.member).where(*self._of(stage), *self._among(among))
        return tuple(self._session.scalars(found.order_by(SumMessageRow.member)))

    def bodies(self, stage: MessageStage, among: Collection[int] | None = None) -> Iterator[tuple[int, bytes]]:
        """As `Messages`."""
        found = select(SumMessageRow.member, SumMessageRow.body).where(*self._of(stage), *self._among(among))
        ordered = found.order_by(SumMessageRow.member).limit(AT_ONCE)
        last = 0
        while page := self._session.execute(ordered.where(SumMessageRow.member > last)).all():
            yield from ((member, body) for member, body in page)
            last = page[-1].member
            if len(page) < AT_ONCE:
                return

    def pseudonyms(self, members: Collection[int]) -> tuple[str, ...]:
        """As `Messages`."""
        found = select(SumMessageRow.pseudonym).where(*self._of("keys"), *self._among(members))
        return tuple(self._session.scalars(found.order_by(SumMessageRow.member)))

    def sources(self) -> Sources:
        """As `Messages`; of a sum that is no round's, none is known."""
        number = re.match(r"round-(\d+)", self._name)
        if number is None:
            return Sources()
        found = (
            select(SumMessageRow.member, ParticipationRow.source)
            .join(ParticipationRow, ParticipationRow.pseudonym == SumMessageRow.pseudonym)
            .where(*self._of("keys"), ParticipationRow.round == int(number[1]), ParticipationRow.source.is_not(None))
        )
        return Sources({member: str(source) for member, source in self._session.execute(found)})

    def forget(self) -> None:
        """As `Messages`."""
        self._session.execute(delete(SumMessageRow).where(SumMessageRow.sum == self._name))
        self._session.execute(delete(SumKeyRow).where(SumKeyRow.sum == self._name))

    def _of(self, stage: MessageStage) -> tuple[ColumnElement[bool], ...]:
        return SumMessageRow.sum == self._name, SumMessageRow.stage == stage

    def _among(self, members: Collection[int] | None) -> tuple[ColumnElement[bool], ...]:
        if members is None:
            return ()
        return (listed(self._session.connection(), SumMessageRow.member, members),)
