"""Secure sums that survive a kill: rows and one file each, and every message is one transaction over both."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.sessions import reading_session, writing_session
from backend.db.tables_federation import SecureSumRow
from backend.federation.secagg.errors import SharesAwaited, SumFailed, SumMessageRefused, UnknownSum
from backend.federation.secagg.members import Members
from backend.federation.secagg.messages import MessageStage
from backend.federation.secagg.record import ENDED, ServerStage, SumRecord
from backend.federation.secagg.rows import SumRows
from backend.federation.secagg.secure_sum import OpenedSum, SecureSum
from backend.federation.secagg.vectors import zero_vector
from backend.releases.blobs import write_durably
from device_app.wire.ring import RingVector, ring_dtype
from device_app.wire.secagg import (
    AdvertisedKeys,
    Agreement,
    Agreements,
    RevealedShares,
    Roster,
    SharedKeys,
    Shares,
    SumTerms,
    Survivors,
)

CHUNK_BYTES = 64 * 1024
SWEEP_AGE_SEC = 3_600.0
TERMS_KEPT = 16
"""Of sums that were asked for last; one or two are under way."""
T = TypeVar("T")
Note = Callable[[Session], None]


def nothing(session: Session) -> None:
    """The note of a message of which nothing else is to be known."""


@dataclass(frozen=True)
class SumLook:
    """is_due: the stage is to be closed, or at unmask the sum to be opened. reason: why it failed."""

    stage: ServerStage
    is_due: bool
    reason: str | None


class SumBook:
    """All secure sums of a server, by name (the `round` of their terms).

    A message reads and writes its own row and the sum's: what it costs doesn't grow with the cohort.

    Formal guarantees: a message has its row and, if it's a masked vector, is in the running sum, or neither is so,
    whenever the server is killed; none is counted twice. A sum is opened from stored state without changing it, so a
    server killed while it applies a sum opens the same one again; `finish` ends it in the transaction that applies it.

    Args:
        engine: a migrated database.
        folder: for running sums and for uploads that are still coming.
        clock: the time, in UTC.
        threads: for unmasking; None is one for each processor.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        clock: Callable[[], datetime],
        *,
        threads: int | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._engine, self._folder, self._clock = engine, folder, clock
        self._threads = threads or os.cpu_count() or 1
        self._terms: dict[str, SumTerms] = {}
        self.sweep()

    def begin(self, terms: SumTerms, *, stage_sec: float, threshold: int | None = None) -> None:
        """A new sum, whose every stage lasts at most `stage_sec`. Raises ValueError if one of that name exists."""
        with writing_session(self._engine) as session:
            self.begin_within(session, terms, stage_sec=stage_sec, keys_sec=stage_sec, threshold=threshold)

    def begin_within(
        self, session: Session, terms: SumTerms, *, stage_sec: float, keys_sec: float, threshold: int | None = None
    ) -> None:
        """The same in the transaction of a round that opens; stage keys, for which devices wait, has its own time."""
        if not (stage_sec > 0 and keys_sec > 0):
            raise ValueError(f"stage_sec: must be above 0, got {stage_sec} and {keys_sec} for the keys")
        fresh = SumRecord(terms=terms, wanted_threshold=threshold)
        if session.get(SecureSumRow, terms.round) is not None:
            raise ValueError(f"terms.round: there is a secure sum {terms.round} already")
        session.add(
            SecureSumRow(
                name=terms.round,
                stage="keys",
                record=fresh.model_dump_json(),
                total=None,
                stage_sec=stage_sec,
                closes_at=self._clock() + timedelta(seconds=keys_sec),
            )
        )

    def terms(self, name: str) -> SumTerms:
        """What a sum was begun with, read once: it never changes. Raises UnknownSum."""
        known = self._terms.get(name)
        if known is None:
            with reading_session(self._engine) as session:
                known = SumRecord.model_validate_json(_row(session, name).record).terms
            if len(self._terms) >= TERMS_KEPT:
                self._terms.clear()
            self._terms[name] = known
        return known

    def stage(self, name: str) -> tuple[ServerStage, datetime]:
        """The stage of a sum and when it closes. Raises UnknownSum."""
        with reading_session(self._engine) as session:
            row = _row(session, name)
            return SumRecord.model_validate_json(row.record).stage, row.closes_at

    def advertise(self, name: str, pseudonym: str, keys: AdvertisedKeys, note: Note = nothing) -> bool:
        """Stage keys. This and the next: as `SecureSum` does, and UnknownSum.

        `note` writes what else is to be known of a message that had not come before, in its transaction.
        """
        return self._take(name, lambda one: one.advertise(pseudonym, keys), note)

    def share(self, name: str, pseudonym: str, shared: SharedKeys, note: Note = nothing) -> bool:
        """Stage shares."""
        return self._take(name, lambda one: one.share(pseudonym, shared), note)

    def add_masked(
        self, name: str, pseudonym: str, chunks: Iterable[bytes], note: Callable[[Session, str], None] | None = None
    ) -> tuple[str, bool]:
        """Stage masked: the SHA-256 of what came, and whether it had come before. `note` is told it too.

        The body goes to a file first, so that a slow device holds no lock.
        """
        limit = self.terms(name).vector_bytes
        coming = self._folder / f"{secrets.token_hex(16)}.coming"
        hashed = sha256()
        try:
            with coming.open("xb") as file:
                for chunk in chunks:
                    if file.tell() + len(chunk) > limit:
                        raise SumMessageRefused("The vector is too long.", field="body", limit=f"{limit} bytes")
                    hashed.update(chunk)
                    file.write(chunk)
            received = hashed.hexdigest()
            return received, self.add_received(name, pseudonym, coming, received, note)
        finally:
            coming.unlink(missing_ok=True)

    def add_received(
        self,
        name: str,
        pseudonym: str,
        coming: Path,
        received: str,
        note: Callable[[Session, str], None] | None = None,
    ) -> bool:
        """Stage masked, of a body that lies whole in a file and has this SHA-256: whether it had come before."""
        with self._turn(name, with_total=True) as (session, _, one):
            again = one.add_masked(pseudonym, _chunks(coming))
            if note is not None and not again:
                note(session, received)
        return again

    def check_due(self, name: str, stage: MessageStage, pseudonym: str) -> None:
        """Whether a message may come now, before it is read: raises as the message would."""
        with reading_session(self._engine) as session:
            self._restore(session, _row(session, name)).check_due(stage, pseudonym)

    def agree(self, name: str, pseudonym: str, agreement: Agreement, note: Note = nothing) -> bool:
        """Stage agree."""
        return self._take(name, lambda one: one.agree(pseudonym, agreement), note)

    def reveal(self, name: str, pseudonym: str, revealed: RevealedShares, note: Note = nothing) -> bool:
        """Stage unmask."""
        return self._take(name, lambda one: one.reveal(pseudonym, revealed), note)

    def roster(self, name: str, pseudonym: str) -> Roster:
        """Answer of stage keys."""
        return self._tell(name, lambda members: members.roster(pseudonym))

    def shares(self, name: str, pseudonym: str) -> Shares:
        """Answer of stage shares."""
        return self._tell(name, lambda members: members.shares(pseudonym))

    def survivors(self, name: str, pseudonym: str) -> Survivors:
        """Answer of stage masked."""
        return self._tell(name, lambda members: members.survivors(pseudonym))

    def agreements(self, name: str, pseudonym: str) -> Agreements:
        """Answer of stage agree."""
        return self._tell(name, lambda members: members.agreements(pseudonym))

    def step(self, name: str) -> ServerStage:
        """Close the present stage if it's complete or its time is over; returns the stage there is then.

        A sum with too few members becomes failed, and its record says why. Stage unmask is left to `opened`: it stays
        until the deadline or until every secret has its shares, which `look` tells.
        """
        with self._turn(name) as (_, row, one):
            if one.stage in (*ENDED, "unmask") or not self._is_due(row, one):
                return one.stage
            try:
                one.close()
            except SumFailed:
                return one.stage
            row.closes_at = self._clock() + timedelta(seconds=row.stage_sec)
            return one.stage

    def look(self, name: str) -> SumLook:
        """Where the sum stands, found out in one read. Raises UnknownSum."""
        with reading_session(self._engine) as session:
            row = _row(session, name)
            one = self._restore(session, row)
            is_due = one.stage not in ENDED and self._is_due(row, one)
            return SumLook(one.stage, is_due, one.record.reason)

    def opened(self, name: str) -> OpenedSum:
        """The sum without its masks; what is stored stays as it is until `finish`.

        Raises SumFailed, after which the sum is `failed`; SharesAwaited if shares are false and more may come, after
        which the sum is due when all have come or its time is over; or SumStageClosed at another stage than unmask.
        """
        try:
            with reading_session(self._engine) as session:
                one = self._restore(session, _row(session, name), with_total=True)
                left = one.leftover()
            return one.unmask(left, threads=self._threads)
        except SumFailed as failed:
            if failed.by_members and self._waits_for_all(name):
                raise SharesAwaited from failed
            self.fail(name, failed.detail, by_members=failed.by_members, liars=failed.liars)
            raise

    def finish(self, session: Session, name: str) -> None:
        """Mark a sum as opened, within the transaction that applies it; what only it needed is forgotten.

        Its running sum is on disk until `clear`, since the transaction may yet be undone.
        """
        row = _row(session, name, to_change=True)
        one = self._restore(session, row)
        one.finish()
        row.stage, row.record = one.stage, one.record.model_dump_json()

    def clear(self) -> None:
        """Remove the running sums of all that have ended, whichever process ended them.

        A sum's row names its file until the file is gone, so a kill at any point leaves it to the next call.
        """
        with reading_session(self._engine) as session:
            ended = session.execute(
                select(SecureSumRow.name, SecureSumRow.total)
                .where(SecureSumRow.stage.in_(ENDED))
                .where(SecureSumRow.total.is_not(None))
            ).all()
        if not ended:
            return
        for _, total in ended:
            if total is not None:
                self._path(total).unlink(missing_ok=True)
        with writing_session(self._engine) as session:
            for name, _ in ended:
                _row(session, name, to_change=True).total = None

    def fail(self, name: str, reason: str, *, by_members: bool = False, liars: Sequence[int] = ()) -> None:
        """End a sum that isn't ended; nothing of it is left on disk. The arguments: as of `SumFailed`."""
        with self._turn(name) as (_, _, one):
            if one.stage not in ENDED:
                one.fail(reason, by_members=by_members, liars=liars)

    def _waits_for_all(self, name: str) -> bool:
        """Have stage unmask wait for the shares of every survivor; False if they are all there, or it's too late."""
        with self._turn(name) as (_, row, one):
            if one.stage != "unmask" or self._clock() >= row.closes_at:
                return False
            one.record.needs_all = True
            return not one.complete

    def under_way(self) -> list[str]:
        """Names of sums that have not ended."""
        with reading_session(self._engine) as session:
            return list(session.scalars(select(SecureSumRow.name).where(SecureSumRow.stage.not_in(ENDED))))

    def _is_due(self, row: SecureSumRow, one: SecureSum) -> bool:
        return one.complete or self._clock() >= row.closes_at

    def _tell(self, name: str, ask: Callable[[Members], T]) -> T:
        with reading_session(self._engine) as session:
            return ask(self._restore(session, _row(session, name)).members)

    def _take(self, name: str, take: Callable[[SecureSum], bool], note: Note) -> bool:
        with self._turn(name) as (session, _, one):
            if again := take(one):
                return again
            note(session)
            return again

    @contextmanager
    def _turn(self, name: str, *, with_total: bool = False) -> Iterator[tuple[Session, SecureSumRow, SecureSum]]:
        """A sum to change; stored when the block ends well, untouched when it raises."""
        with writing_session(self._engine) as session:
            row = _row(session, name, to_change=True)
            before = row.total
            one = self._restore(session, row, with_total=with_total)
            yield session, row, one
            row.stage, row.record = one.stage, one.record.model_dump_json()
            if with_total and one.stage != "failed":
                row.total = self._keep(one.total)
            after, failed = row.total, one.stage == "failed"
        # The transaction is committed: nobody needs the sum of before.
        if before is not None and before != after:
            self._path(before).unlink(missing_ok=True)
        if failed:
            self.clear()

    def _restore(self, session: Session, row: SecureSumRow, *, with_total: bool = False) -> SecureSum:
        record = SumRecord.model_validate_json(row.record)
        total = self._total(row.total, record.terms) if with_total and row.total is not None else None
        return SecureSum(record, SumRows(session, row.name), total)

    def _keep(self, total: RingVector) -> str:
        name = sha256(total.data).hexdigest()
        if not self._path(name).exists():
            write_durably(self._path(name), total.data)
        return name

    def _total(self, name: str, terms: SumTerms) -> RingVector:
        total = zero_vector(terms.length, ring_dtype(terms.bits))
        try:
            with self._path(name).open("rb") as file:
                file.readinto(total.view(np.uint8).data)
        except FileNotFoundError as missing:
            raise SumFailed("The running sum is missing on disk.") from missing
        if sha256(total.data).hexdigest() != name:
            raise SumFailed("The running sum is damaged on disk.")
        return total

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.sum"

    def sweep(self) -> None:
        """Remove what a kill left behind: sums that have ended, and from an hour ago or earlier uploads that broke off
        and sums that no row names."""
        self.clear()
        with reading_session(self._engine) as session:
            named = {f"{total}.sum" for total in session.scalars(select(SecureSumRow.total)) if total}
        for path in self._folder.iterdir():
            # Younger files may be another worker's, between its disk and its commit.
            if path.name not in named and time.time() - path.stat().st_mtime > SWEEP_AGE_SEC:
                path.unlink(missing_ok=True)


def _row(session: Session, name: str, *, to_change: bool = False) -> SecureSumRow:
    row = session.get(SecureSumRow, name, with_for_update=to_change)
    if row is None:
        raise UnknownSum
    return row


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
