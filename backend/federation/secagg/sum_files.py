"""Secure sums in the database and the storage: a row each, and an object for the running sum, which the row names."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine, bindparam, select, update
from sqlalchemy.orm import Session

from backend.db.engine import DatabaseUnreachable, reading_session, writing, writing_session
from backend.db.prepared import Prepared
from backend.db.tables_federation import SecureSumRow
from backend.federation.secagg.errors import UnknownSum
from backend.federation.secagg.parts import deal, part_of, part_rows
from backend.federation.secagg.record import ENDED, ServerStage, SumRecord
from backend.federation.secagg.rows import SumRows
from backend.federation.secagg.running_sums import RunningSums, SumName
from backend.federation.secagg.secure_sum import SecureSumServer
from backend.storage.object_store import ObjectStore

SWEEP_AGE_SEC = 3_600.0
_FAILED = "a sum has failed"
Stored = tuple[SecureSumRow, SecureSumServer]
_ROW = select(SecureSumRow.record, SecureSumRow.total, SecureSumRow.kept_as).where(
    SecureSumRow.name == bindparam("name")
)
_TO_READ, _TO_CHANGE = Prepared(_ROW), Prepared(_ROW.with_for_update())
_TOTAL = Prepared(
    update(SecureSumRow)
    .where(SecureSumRow.name == bindparam("of"))
    .values(total=bindparam("after"), kept_as=bindparam("named"))
)


@dataclass(frozen=True)
class MemberRow:
    """What a message needs of a sum's row."""

    name: str
    record: SumRecord
    total: SumName


class StoredSums:
    """Reads sums of rows and objects, and writes them back."""

    def __init__(self, engine: Engine, objects: ObjectStore) -> None:
        self._engine, self._running = engine, RunningSums(objects)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction, after which the running sums of those that failed in it are gone."""
        with writing_session(self._engine) as session:
            yield session
            failed = _FAILED in session.info
        if failed:
            self.clear()

    def read(self, session: Session, name: str, *, to_change: bool = False) -> Stored:
        """Raises UnknownSum."""
        row = self.row(session, name, to_change=to_change)
        return row, self.restore(session, row)

    @contextmanager
    def turn(self, name: str, pseudonym: str, *, adds: bool = False) -> Iterator[tuple[Connection, SecureSumServer]]:
        """A transaction with this member's sum to change: of the name, or a part of it. What the block does is there
        when it ends well, and nothing of it when it raises. Raises as `of_member`.

        adds: with the running sum while its stage is open, which is stored if the block adds to it, and is held for the
        next.
        """
        kept = None
        try:
            with writing(self._engine) as connection:
                row = self.of_member(connection, name, pseudonym, to_change=True)
                # After its stage nothing is added, and what is taken might be gone: a message is only told so.
                is_taken = adds and row.record.stage == "masked" and bool(row.total.known)
                total = self._running.take(row.total, row.record.terms) if is_taken else None
                one = SecureSumServer(row.record, SumRows(connection, row.name), total)
                yield connection, one
                kept = self._running.keep(one.total, row.total) if one.added else None
                after = kept or row.total
                if after != row.total:
                    _TOTAL.run(connection, of=row.name, after=after.total, named=after.kept_as)
        except DatabaseUnreachable:
            raise  # it may be committed; if it isn't, a sweep removes what no row names
        except Exception:
            if kept is not None:  # on a full disk each new try would leave one, and take what room there is
                self._running.remove(kept, row.total)
            raise
        if one.added or is_taken:
            self._running.hold(after, one.total)
        if after != row.total:
            self._running.remove(row.total, after)

    def member_sum(self, connection: Connection, name: str, pseudonym: str) -> SecureSumServer:
        """The same to read. Raises as `of_member`."""
        row = self.of_member(connection, name, pseudonym)
        if row.record.stage != "masked":
            self._running.let_go(row.total)
        return SecureSumServer(row.record, SumRows(connection, row.name))

    def of_member(self, connection: Connection, name: str, pseudonym: str, *, to_change: bool = False) -> MemberRow:
        """The sum that this pseudonym is a member of: the one of that name, or a part of it. Raises UnknownSum, or as
        `part_of`."""
        whole = self._member_row(connection, name, to_change)
        parts = whole.record.parts
        if not parts or whole.record.stage in ENDED:
            return whole
        return self._member_row(connection, part_of(connection, name, parts, pseudonym), to_change)

    def _member_row(self, connection: Connection, name: str, to_change: bool) -> MemberRow:
        found = (_TO_CHANGE if to_change else _TO_READ).run(connection, name=name).first()
        if found is None:
            raise UnknownSum
        record, *total = found
        return MemberRow(name, SumRecord.model_validate_json(record), SumName(*total))

    def parts(self, session: Session, whole: Stored, *, to_change: bool = False) -> list[Stored]:
        """Of a sum that is split; none of another."""
        row, one = whole
        rows = part_rows(session, row.name, one.record.parts, to_change=to_change)
        return [(each, self.restore(session, each)) for each in rows]

    def row(self, session: Session, name: str, *, to_change: bool = False) -> SecureSumRow:
        """Raises UnknownSum."""
        row = session.get(SecureSumRow, name, with_for_update=to_change)
        if row is None:
            raise UnknownSum
        return row

    def restore(self, session: Session, row: SecureSumRow, *, with_total: bool = False) -> SecureSumServer:
        """with_total: with its running sum, unless it has ended and that may be gone. Raises SumFailed if it is lost or
        damaged."""
        record = SumRecord.model_validate_json(row.record)
        total = None
        if with_total and row.total is not None and record.stage not in ENDED:
            total = self._running.read(_name_of(row), record.terms)
        return SecureSumServer(record, SumRows(session.connection(), row.name), total)

    def write(self, session: Session, stored: Stored) -> None:
        """The record."""
        row, one = stored
        row.stage, row.record = _told(one.stage), one.record.model_dump_json()
        if one.stage == "failed":
            session.info[_FAILED] = True
        if one.stage != "masked":
            self._running.let_go(_name_of(row))

    def split(self, session: Session, whole: Stored, count: int, closes_at: datetime) -> None:
        """Deal the cohort into parts, which go on at stage shares, in the transaction that closes the whole's keys."""
        row, one = whole
        blank = SumRecord(terms=one.record.terms).model_dump_json()
        for part_row in deal(session, row, one.messages.count("keys"), count, blank):
            part = self.restore(session, part_row)
            part.close()
            part_row.closes_at = closes_at
            self.write(session, (part_row, part))
        row.closes_at, one.record.parts, one.record.stage = closes_at, count, "shares"
        self.write(session, whole)

    def fail(
        self,
        session: Session,
        whole: Stored,
        parts: list[Stored],
        reason: str,
        *,
        by_members: bool = False,
        liars: Sequence[int] = (),
    ) -> None:
        """End those that aren't ended. liars: as of `SumFailed`; what parts know of theirs the whole knows too."""
        for each in (*parts, whole):
            if each[1].stage not in ENDED:
                each[1].fail(reason, by_members=by_members, liars=liars)
                if parts and each is whole:
                    each[1].record.liars = tuple(liar for _, part in parts for liar in part.record.liars)
                self.write(session, each)

    def clear(self) -> None:
        """As `SecureSumStore`."""
        with reading_session(self._engine) as session:
            ended = session.execute(
                select(SecureSumRow.name, SecureSumRow.total, SecureSumRow.kept_as)
                .where(SecureSumRow.stage.in_(ENDED))
                .where(SecureSumRow.total.is_not(None) | SecureSumRow.kept_as.is_not(None))
            ).all()
        cleared = [name for name, *total in ended if self._running.remove(SumName(*total))]
        if not cleared:
            return
        with writing_session(self._engine) as session:
            for name in cleared:
                row = self.row(session, name, to_change=True)
                row.total = row.kept_as = None

    def sweep(self) -> None:
        """As `SecureSumStore`."""
        self.clear()
        with reading_session(self._engine) as session:
            rows = session.execute(select(SecureSumRow.total, SecureSumRow.kept_as)).all()
        named = {each for row in rows for each in row if each}
        self._running.sweep(named, time.time() - SWEEP_AGE_SEC)


def _name_of(row: SecureSumRow) -> SumName:
    return SumName(row.total, row.kept_as)


def _told(stage: ServerStage) -> ServerStage:
    """As a round's status tells it: complaints are part of the exchange of shares."""
    return "shares" if stage == "complaints" else stage
