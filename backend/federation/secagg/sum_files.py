"""Secure sums in the database and the storage: a row each, and an object for the running sum, named by its SHA-256."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256

import numpy as np
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables_federation import SecureSumRow
from backend.federation.secagg.errors import SumFailed, UnknownSum
from backend.federation.secagg.parts import deal, part_of, part_rows
from backend.federation.secagg.record import ENDED, ServerStage, SumRecord
from backend.federation.secagg.rows import SumRows
from backend.federation.secagg.secure_sum import SecureSumServer, zero_vector
from backend.storage.object_store import ObjectStore, StorageUnavailable
from device_app.wire.ring import RingVector, ring_dtype
from device_app.wire.secagg import SumTerms

SWEEP_AGE_SEC = 3_600.0
_GONE, _FAILED = "running sums that nothing names any more", "a sum has failed"
Stored = tuple[SecureSumRow, SecureSumServer]

_log = logging.getLogger(__name__)


class StoredSums:
    """Reads sums of rows and objects, and writes them back."""

    def __init__(self, engine: Engine, objects: ObjectStore) -> None:
        self._engine, self._objects = engine, objects

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction, after which running sums that nothing names any more are gone."""
        with writing_session(self._engine) as session:
            yield session
            gone: list[str] = session.info.get(_GONE, [])
            failed = _FAILED in session.info
        for total in gone:
            self._remove(total)
        if failed:
            self.clear()

    def read(self, session: Session, name: str, *, to_change: bool = False, with_total: bool = False) -> Stored:
        """Raises UnknownSum."""
        row = self.row(session, name, to_change=to_change)
        return row, self.restore(session, row, with_total=with_total)

    def read_for(
        self, session: Session, name: str, pseudonym: str, *, to_change: bool = False, with_total: bool = False
    ) -> Stored:
        """The sum that this pseudonym is a member of: the one of that name, or a part of it. Raises as `part_of`."""
        whole = self.read(session, name, to_change=to_change, with_total=with_total)
        parts = whole[1].record.parts
        if not parts or whole[1].stage in ENDED:
            return whole
        mine = part_of(session, name, parts, pseudonym)
        return self.read(session, mine, to_change=to_change, with_total=with_total)

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
            total = self._total(row.total, record.terms)
        return SecureSumServer(record, SumRows(session, row.name), total)

    def write(self, session: Session, stored: Stored, *, with_total: bool = False) -> None:
        """The record, and the running sum if asked and it hasn't failed."""
        row, one = stored
        before = row.total
        row.stage, row.record = _told(one.stage), one.record.model_dump_json()
        if one.stage == "failed":
            session.info[_FAILED] = True
        elif with_total:
            row.total = self._keep(one.total)
        if before is not None and before != row.total:
            session.info.setdefault(_GONE, []).append(before)

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
                select(SecureSumRow.name, SecureSumRow.total)
                .where(SecureSumRow.stage.in_(ENDED))
                .where(SecureSumRow.total.is_not(None))
            ).all()
        cleared = [name for name, total in ended if total is not None and self._remove(total)]
        if not cleared:
            return
        with writing_session(self._engine) as session:
            for name in cleared:
                self.row(session, name, to_change=True).total = None

    def sweep(self) -> None:
        """As `SecureSumStore`."""
        self.clear()
        with reading_session(self._engine) as session:
            named = {_key(total) for total in session.scalars(select(SecureSumRow.total)) if total}
        for each in list(self._objects.list()):
            # Younger ones may be another worker's, between its storage and its commit.
            if each.key not in named and time.time() - each.modified > SWEEP_AGE_SEC:
                self._objects.delete(each.key)

    def _remove(self, total: str) -> bool:
        """Whether it is gone. The transaction that it comes after holds, whatever the storage answers: what can't be
        removed is an error in the log, and the next `clear` or `sweep` tries again."""
        try:
            self._objects.delete(_key(total))
        except (OSError, StorageUnavailable) as why:
            _log.error("A running sum could not be removed: %s/%s (%s)", self._objects, _key(total), why)
            return False
        return True

    def _keep(self, total: RingVector) -> str:
        name = sha256(total.data).hexdigest()
        self._objects.put(_key(name), total.data)
        return name

    def _total(self, name: str, terms: SumTerms) -> RingVector:
        total = zero_vector(terms.length, ring_dtype(terms.bits))
        try:
            self._objects.read_into(_key(name), total.view(np.uint8).data)
        except FileNotFoundError as missing:
            raise SumFailed("The running sum is missing on disk.") from missing
        if sha256(total.data).hexdigest() != name:
            raise SumFailed("The running sum is damaged on disk.")
        return total


def _key(total: str) -> str:
    return f"{total}.sum"


def _told(stage: ServerStage) -> ServerStage:
    """As a round's status tells it: complaints are part of the exchange of shares."""
    return "shares" if stage == "complaints" else stage
