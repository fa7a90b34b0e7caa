"""Secure sums as a row each, which names the object of the running sum.

The name of an object contains the SHA-256 of its content. The running sum stored last is also kept in memory.
"""

import logging
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from secrets import token_hex

import numpy as np
from sqlalchemy import Connection, Engine, bindparam, select, update
from sqlalchemy.orm import Session

from backend.db.engine import DatabaseUnreachable, reading_session, writing, writing_session
from backend.db.statements import Prepared
from backend.db.tables import SecureSumRow
from backend.federation.errors import SumFailed, UnknownSum
from backend.federation.secagg.graph import deal, part_of, part_rows
from backend.federation.secagg.messages import ENDED, ServerStage, SumRecord, SumRows
from backend.federation.secagg.secure_sum import SecureSumServer, zero_vector
from backend.storage.object_store import ObjectStore, StorageUnavailable
from protocol.ring import RingVector, ring_dtype
from protocol.secagg import SumTerms

MISSING = "The running sum is missing on disk."
_log = logging.getLogger(__name__)
_TOKEN_BYTES = 10
"""With the hash in base64, a name has the 64 characters that its column can hold."""


class RunningSums:
    """Stores, reads and deletes running sums; safe for several threads, processes and machines.

    A name is a random token, a dot, and the SHA-256 of the sum.

    Formal guarantees: what `read` and `take` return has the SHA-256 in its name. Two calls of `keep` give the same name
    with probability 2^-80: whatever members send, no sum deletes another's object. `take` returns what this process
    computed and hashed itself if that is still the sum of this name, however many workers have added to other sums
    meanwhile; `read`, by which sums are opened, always returns what is stored.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self.objects = objects
        self._lock = threading.Lock()
        self._held: tuple[str, RingVector] | None = None

    def read(self, name: str | None, terms: SumTerms) -> RingVector:
        """Return the stored sum. Raises SumFailed if it is lost or damaged, or if name is None."""
        total = zero_vector(terms.length, ring_dtype(terms.bits))
        if name is None:
            raise SumFailed(MISSING)
        try:
            self.objects.read_into(_key(name), total.view(np.uint8).data)
        except FileNotFoundError as missing:
            raise SumFailed(MISSING) from missing
        if name.rpartition(".")[2] != _short(sha256(total.data).digest()):
            raise SumFailed("The running sum is damaged on disk.")
        return total

    def take(self, name: str | None, terms: SumTerms) -> RingVector:
        """Return the sum to add to it; a cached one is removed from the cache.

        Raises what `read` raises.
        """
        with self._lock:
            held, self._held = self._held, None
        if held is not None and held[0] == name:
            return held[1]
        return self.read(name, terms)

    def keep(self, total: RingVector) -> str:
        """Store a sum and return its name. Raises OSError or StorageUnavailable."""
        # The token makes names unique: sums of two rounds or parts may be equal, and a sum may return to an earlier
        # value.
        name = f"{token_hex(_TOKEN_BYTES)}.{_short(sha256(total.data).digest())}"
        try:
            self.objects.put(_key(name), total.data)
        except OSError:
            # On a full disk syncing the folder may fail although the object was written.
            self.remove(name)
            raise
        return name

    def hold(self, name: str, total: RingVector) -> None:
        """Cache the sum stored under this name, once the transaction that names it is committed."""
        with self._lock:
            self._held = name, total

    def drop(self, name: str | None) -> None:
        """Drop the sum from the cache because its stage is over."""
        with self._lock:
            if self._held is not None and self._held[0] == name:
                self._held = None

    def remove(self, name: str | None) -> bool:
        """Delete a sum; returns whether it is gone.

        It never raises on a storage failure, so that the preceding transaction stays valid. A failed deletion is logged
        as an error, and the next `clear` or `sweep` tries again.
        """
        self.drop(name)
        if name is None:
            return True
        try:
            self.objects.delete(_key(name))
        except (OSError, StorageUnavailable) as why:
            self._log_not_removed(_key(name), why)
            return False
        return True

    def sweep(self, named: set[str], before: float) -> None:
        """Delete the sums that no row names and that are older than `before` (seconds since 1970).

        A younger one may be another worker's, stored but not yet committed. A failed deletion is logged as an error,
        and the next `sweep` tries again.
        """
        keys, key = {_key(each) for each in named}, ""
        try:
            for each in list(self.objects.list()):
                if each.key not in keys and each.modified < before:
                    key = each.key
                    self.objects.delete(key)
        except (OSError, StorageUnavailable) as why:  # the others would fail as slowly
            self._log_not_removed(key, why)

    def _log_not_removed(self, key: str, why: Exception) -> None:
        _log.error("A running sum could not be removed: %s/%s (%s)", self.objects, key, why)


def _short(digest: bytes) -> str:
    return urlsafe_b64encode(digest).decode().rstrip("=")


def _key(name: str) -> str:
    return f"{name}.sum"


SWEEP_AGE_SEC = 3_600.0
_FAILED = "a sum has failed"
Stored = tuple[SecureSumRow, SecureSumServer]
_ROW = select(SecureSumRow.record, SecureSumRow.total).where(SecureSumRow.name == bindparam("name"))
_TO_READ, _TO_CHANGE = Prepared(_ROW), Prepared(_ROW.with_for_update())
_TOTAL = Prepared(update(SecureSumRow).where(SecureSumRow.name == bindparam("of")).values(total=bindparam("after")))


@dataclass(frozen=True)
class MemberRow:
    """The columns of a sum's row that a message needs."""

    name: str
    record: SumRecord
    total: str | None


class StoredSums:
    """Reads sums from rows and objects, and writes them back."""

    def __init__(self, engine: Engine, objects: ObjectStore) -> None:
        self._engine, self._running = engine, RunningSums(objects)

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Open a transaction; after it, delete the running sums of sums that failed in it."""
        with writing_session(self._engine) as session:
            yield session
            failed = _FAILED in session.info
        if failed:
            self.clear()

    def read(self, session: Session, name: str, *, to_change: bool = False) -> Stored:
        """Return the row of a sum and the sum. Raises UnknownSum."""
        row = self.row(session, name, to_change=to_change)
        return row, self.restore(session, row)

    @contextmanager
    def locked(self, name: str, pseudonym: str, *, adds: bool = False) -> Iterator[tuple[Connection, SecureSumServer]]:
        """Open a transaction that locks the sum of this member, or its part, for changes.

        The changes are committed if the block succeeds and rolled back if it raises. Raises what `of_member` raises.

        adds: load the running sum too, while the `masked` stage is open. If the block adds to it, it is stored, and
        cached for the next message.
        """
        kept = None
        try:
            with writing(self._engine) as connection:
                row = self.of_member(connection, name, pseudonym, to_change=True)
                # After the `masked` stage nothing is added and the object may be gone; the message only gets an error.
                is_taken = adds and row.record.stage == "masked" and row.total is not None
                total = self._running.take(row.total, row.record.terms) if is_taken else None
                one = SecureSumServer(row.record, SumRows(connection, row.name), total)
                yield connection, one
                kept = self._running.keep(one.total) if one.added else None
                after = kept or row.total
                if after != row.total:
                    _TOTAL.run(connection, of=row.name, after=after)
        except DatabaseUnreachable:
            raise  # it may be committed; if not, a sweep deletes the unnamed object
        except Exception:
            if kept is not None:  # on a full disk each retry would leave an object and use up space
                self._running.remove(kept)
            raise
        if after is not None and (one.added or is_taken):
            self._running.hold(after, one.total)
        if after != row.total:
            self._running.remove(row.total)

    def member_sum(self, connection: Connection, name: str, pseudonym: str) -> SecureSumServer:
        """Return the sum of this member for reading. Raises what `of_member` raises."""
        row = self.of_member(connection, name, pseudonym)
        if row.record.stage != "masked":
            self._running.drop(row.total)
        return SecureSumServer(row.record, SumRows(connection, row.name))

    def of_member(self, connection: Connection, name: str, pseudonym: str, *, to_change: bool = False) -> MemberRow:
        """Return the row of the sum of this name, or of its part that contains the pseudonym.

        Raises UnknownSum, or as `part_of`.
        """
        row = self._member_row(connection, name, to_change)
        parts = row.record.parts
        if not parts or row.record.stage in ENDED:
            return row
        return self._member_row(connection, part_of(connection, name, parts, pseudonym), to_change)

    def _member_row(self, connection: Connection, name: str, to_change: bool) -> MemberRow:
        found = (_TO_CHANGE if to_change else _TO_READ).run(connection, name=name).first()
        if found is None:
            raise UnknownSum
        record, total = found
        return MemberRow(name, SumRecord.model_validate_json(record), total)

    def parts(self, session: Session, stored: Stored, *, to_change: bool = False) -> list[Stored]:
        """Return the parts of a split sum, or none."""
        row, one = stored
        rows = part_rows(session, row.name, one.record.parts, to_change=to_change)
        return [(each, self.restore(session, each)) for each in rows]

    def row(self, session: Session, name: str, *, to_change: bool = False) -> SecureSumRow:
        """Return the row of a sum. Raises UnknownSum."""
        row = session.get(SecureSumRow, name, with_for_update=to_change)
        if row is None:
            raise UnknownSum
        return row

    def restore(self, session: Session, row: SecureSumRow, *, with_total: bool = False) -> SecureSumServer:
        """Return the sum of a row.

        with_total: load its running sum too, unless the sum has ended and that may be gone. Raises SumFailed if it is
        lost or damaged.
        """
        record = SumRecord.model_validate_json(row.record)
        total = None
        if with_total and row.total is not None and record.stage not in ENDED:
            total = self._running.read(row.total, record.terms)
        return SecureSumServer(record, SumRows(session.connection(), row.name), total)

    def write(self, session: Session, stored: Stored) -> None:
        """Write the record to its row."""
        row, one = stored
        row.stage, row.record = _public_stage(one.stage), one.record.model_dump_json()
        if one.stage == "failed":
            session.info[_FAILED] = True
        if one.stage != "masked":
            self._running.drop(row.total)

    def split(self, session: Session, stored: Stored, count: int, closes_at: datetime) -> None:
        """Split the cohort into parts, in the transaction that closes the `keys` stage.

        The parts continue in the `shares` stage.
        """
        row, one = stored
        blank = SumRecord(terms=one.record.terms).model_dump_json()
        for part_row in deal(session, row, one.messages.count("keys"), count, blank):
            part = self.restore(session, part_row)
            part.close()
            part_row.closes_at = closes_at
            self.write(session, (part_row, part))
        row.closes_at, one.record.parts, one.record.stage = closes_at, count, "shares"
        self.write(session, stored)

    def fail(
        self,
        session: Session,
        stored: Stored,
        parts: list[Stored],
        reason: str,
        *,
        by_members: bool = False,
        malicious: Sequence[int] = (),
    ) -> None:
        """End the sum and its parts, as far as they haven't ended.

        malicious: as in `SumFailed`; the whole sum also lists the malicious members of its parts.
        """
        for each in (*parts, stored):
            if each[1].stage not in ENDED:
                each[1].fail(reason, by_members=by_members, malicious=malicious)
                if parts and each is stored:
                    each[1].record.malicious = tuple(member for _, part in parts for member in part.record.malicious)
                self.write(session, each)

    def clear(self) -> None:
        with reading_session(self._engine) as session:
            ended = session.execute(
                select(SecureSumRow.name, SecureSumRow.total)
                .where(SecureSumRow.stage.in_(ENDED))
                .where(SecureSumRow.total.is_not(None))
            ).all()
        cleared = [name for name, total in ended if self._running.remove(total)]
        if not cleared:
            return
        with writing_session(self._engine) as session:
            for name in cleared:
                row = self.row(session, name, to_change=True)
                row.total = None

    def sweep(self) -> None:
        self.clear()
        with reading_session(self._engine) as session:
            named = {name for name in session.scalars(select(SecureSumRow.total)) if name is not None}
        self._running.sweep(named, time.time() - SWEEP_AGE_SEC)


def _public_stage(stage: ServerStage) -> ServerStage:
    """Return the stage as a round's status shows it.

    The `complaints` stage is shown as the `shares` stage.
    """
    return "shares" if stage == "complaints" else stage
