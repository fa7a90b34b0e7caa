"""Secure sums that survive a kill: rows and one file each, and every message is one transaction over both."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.sessions import reading_session, writing_session
from backend.db.tables_federation import SecureSumRow
from backend.federation.errors import UnknownPseudonym
from backend.federation.secagg.errors import SharesAwaited, SumFailed, SumMessageRefused, SumStageClosed
from backend.federation.secagg.members import Members
from backend.federation.secagg.messages import MessageStage
from backend.federation.secagg.parts import CohortSplit
from backend.federation.secagg.record import ENDED, STAGES, ServerStage, SumRecord
from backend.federation.secagg.secure_sum import OpenedSum, SecureSumServer
from backend.federation.secagg.stored import Stored, StoredSums
from device_app.wire.secagg import (
    AdvertisedKeys,
    Agreement,
    Agreements,
    Complaints,
    RevealedShares,
    Roster,
    SharedKeys,
    Sharers,
    Shares,
    SumTerms,
    Survivors,
)

CHUNK_BYTES = 64 * 1024
TERMS_KEPT = 16  # of sums that were asked for last; one or two are under way
T = TypeVar("T")
Note = Callable[[Session], None]


def nothing(session: Session) -> None:
    """The note of a message of which nothing else is to be known."""


@dataclass(frozen=True)
class SumPoll:
    """is_due: the stage is to be closed, or at unmask the sum to be opened. reason: why it failed."""

    stage: ServerStage
    is_due: bool
    reason: str | None


class SecureSumStore:
    """All secure sums of a server, by name (the `round` of their terms).

    A message reads and writes its own row and the sum's: what it costs doesn't grow with the cohort. A sum begun with
    `split` becomes several when stage keys closes (`parts`): who sends and asks by the name of the whole is led to the
    part it's a member of, and the whole stands where its slowest part does.

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
        self._engine, self._folder, self._clock = engine, folder, clock
        self._stored = StoredSums(engine, folder)
        self._threads = threads or os.cpu_count() or 1
        self._terms: dict[str, SumTerms] = {}
        self.sweep()

    def begin(self, terms: SumTerms, *, stage_sec: float, threshold: int | None = None) -> None:
        """A new sum, whose every stage lasts at most `stage_sec`. Raises ValueError if one of that name exists."""
        with writing_session(self._engine) as session:
            self.begin_within(session, terms, stage_sec=stage_sec, keys_sec=stage_sec, threshold=threshold)

    def begin_within(
        self,
        session: Session,
        terms: SumTerms,
        *,
        stage_sec: float,
        keys_sec: float,
        threshold: int | None = None,
        split: CohortSplit | None = None,
    ) -> None:
        """The same in the transaction of a round that opens; stage keys, for which devices wait, has its own time."""
        if not (stage_sec > 0 and keys_sec > 0):
            raise ValueError(f"stage_sec: must be above 0, got {stage_sec} and {keys_sec} for the keys")
        fresh = SumRecord(terms=terms, wanted_threshold=threshold, split=split)
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
                known = self._stored.read(session, name)[1].record.terms
            if len(self._terms) >= TERMS_KEPT:
                self._terms.clear()
            self._terms[name] = known
        return known

    def stage(self, name: str) -> tuple[ServerStage, datetime]:
        """The stage of a sum and when it closes. Raises UnknownSum."""
        with reading_session(self._engine) as session:
            row, one = self._stored.read(session, name)
            return one.stage, row.closes_at

    def advertise(self, name: str, pseudonym: str, keys: AdvertisedKeys, note: Note = nothing) -> bool:
        """Stage keys. This and the next: as `SecureSumServer` does, and UnknownSum.

        `note` writes what else is to be known of a message that had not come before, in its transaction.
        """
        try:
            return self._take(name, pseudonym, lambda one: one.advertise(pseudonym, keys), note)
        except UnknownPseudonym:
            # Only a sum that is split knows its members before it reads the message.
            raise SumStageClosed("keys", self.stage(name)[0]) from None

    def share(self, name: str, pseudonym: str, shared: SharedKeys, note: Note = nothing) -> bool:
        """Stage shares."""
        return self._take(name, pseudonym, lambda one: one.share(pseudonym, shared), note)

    def complain(self, name: str, pseudonym: str, complaints: Complaints, note: Note = nothing) -> bool:
        """Stage complaints."""
        return self._take(name, pseudonym, lambda one: one.complain(pseudonym, complaints), note)

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
        with self._turn(name, pseudonym, with_total=True) as (session, one):
            again = one.add_masked(pseudonym, _chunks(coming))
            if note is not None and not again:
                note(session, received)
        return again

    def check_due(self, name: str, stage: MessageStage, pseudonym: str) -> None:
        """Whether a message may come now, before it is read: raises as the message would."""
        with reading_session(self._engine) as session:
            try:
                one = self._stored.read_for(session, name, pseudonym)[1]
            except UnknownPseudonym:
                if stage == "keys":
                    raise SumStageClosed("keys", self._stored.read(session, name)[1].stage) from None
                raise
            one.check_due(stage, pseudonym)

    def agree(self, name: str, pseudonym: str, agreement: Agreement, note: Note = nothing) -> bool:
        """Stage agree."""
        return self._take(name, pseudonym, lambda one: one.agree(pseudonym, agreement), note)

    def reveal(self, name: str, pseudonym: str, revealed: RevealedShares, note: Note = nothing) -> bool:
        """Stage unmask."""
        return self._take(name, pseudonym, lambda one: one.reveal(pseudonym, revealed), note)

    def roster(self, name: str, pseudonym: str) -> Roster:
        """Answer of stage keys."""
        return self._tell(name, pseudonym, lambda members: members.roster(pseudonym))

    def shares(self, name: str, pseudonym: str) -> Shares:
        """Answer of stage shares."""
        return self._tell(name, pseudonym, lambda members: members.shares(pseudonym))

    def sharers(self, name: str, pseudonym: str) -> Sharers:
        """Answer of stage complaints."""
        return self._tell(name, pseudonym, lambda members: members.sharers_answer(pseudonym))

    def survivors(self, name: str, pseudonym: str) -> Survivors:
        """Answer of stage masked."""
        return self._tell(name, pseudonym, lambda members: members.survivors(pseudonym))

    def agreements(self, name: str, pseudonym: str) -> Agreements:
        """Answer of stage agree."""
        return self._tell(name, pseudonym, lambda members: members.agreements(pseudonym))

    def step(self, name: str) -> ServerStage:
        """Close the present stage if it's complete or its time is over; returns the stage there is then.

        A sum with too few members becomes failed, and its record says why. Stage unmask is left to `opened`: it stays
        until the deadline or until every secret has its shares, which `poll` tells.
        """
        with self._stored.writing() as session:
            whole = self._stored.read(session, name, to_change=True)
            one = whole[1]
            if one.stage in ENDED:
                return one.stage
            if parts := self._stored.parts(session, whole, to_change=True):
                for each in parts:
                    self._close(session, each)
                self._follow(session, whole, parts)
            elif one.stage == "keys" and self._is_due(whole) and (count := _parts_due(one)):
                self._stored.split(session, whole, count, self._clock() + timedelta(seconds=whole[0].stage_sec))
            else:
                self._close(session, whole)
            return one.stage

    def poll(self, name: str) -> SumPoll:
        """Where the sum stands, found out in one read. Raises UnknownSum."""
        with reading_session(self._engine) as session:
            whole = self._stored.read(session, name)
            parts = [each for each in self._stored.parts(session, whole) if each[1].stage not in ENDED]
            one = whole[1]
            if one.stage in ENDED:
                is_due = False
            elif not parts:
                is_due = self._is_due(whole)
            elif early := [each for each in parts if each[1].stage != "unmask"]:
                is_due = any(self._is_due(each) for each in early)
            else:
                is_due = all(self._is_due(each) for each in parts)
            return SumPoll(one.stage, is_due, one.record.reason)

    def parts(self, name: str) -> tuple[str, ...]:
        """Names of the parts of a sum that haven't failed; none if it isn't split. Raises UnknownSum."""
        with reading_session(self._engine) as session:
            parts = self._stored.parts(session, self._stored.read(session, name))
            return tuple(row.name for row, part in parts if part.stage != "failed")

    def opened(self, name: str) -> OpenedSum:
        """The sum without its masks; what is stored stays as it is until `finish`.

        Raises SumFailed, after which the sum is `failed`; SharesAwaited if shares are false and more may come, after
        which the sum is due when all have come or its time is over; or SumStageClosed at another stage than unmask.
        """
        try:
            with reading_session(self._engine) as session:
                _, one = self._stored.read(session, name, with_total=True)
                left = one.leftover()
            return one.unmask(left, threads=self._threads)
        except SumFailed as failed:
            if failed.by_members and self._waits_for_all(name):
                raise SharesAwaited from failed
            self.fail(name, failed.detail, by_members=failed.by_members, liars=failed.liars)
            raise

    def finish(self, session: Session, name: str) -> None:
        """Mark a sum and its parts as opened, within the transaction that applies them; what only they needed is
        forgotten.

        Running sums are on disk until `clear`, since the transaction may yet be undone.
        """
        whole = self._stored.read(session, name, to_change=True)
        for part in self._stored.parts(session, whole, to_change=True):
            if part[1].stage not in ENDED:
                part[1].finish()
                self._stored.write(session, part)
        whole[1].finish()
        self._stored.write(session, whole)

    def clear(self) -> None:
        """Remove the running sums of all that have ended, whichever process ended them.

        A sum's row names its file until the file is gone, so a kill at any point leaves it to the next call.
        """
        self._stored.clear()

    def fail(self, name: str, reason: str, *, by_members: bool = False, liars: Sequence[int] = ()) -> None:
        """End a sum that isn't ended, and its parts; nothing of it stays on disk. The arguments: as of `SumFailed`."""
        with self._stored.writing() as session:
            whole = self._stored.read(session, name, to_change=True)
            parts = self._stored.parts(session, whole, to_change=True)
            self._stored.fail(session, whole, parts, reason, by_members=by_members, liars=liars)

    def _waits_for_all(self, name: str) -> bool:
        """Have stage unmask wait for the shares of every survivor; False if they are all there, or it's too late."""
        with self._stored.writing() as session:
            mine = self._stored.read(session, name, to_change=True)
            row, one = mine
            if one.stage != "unmask" or self._clock() >= row.closes_at:
                return False
            one.record.needs_all = True
            self._stored.write(session, mine)
            return not one.complete

    def under_way(self) -> list[str]:
        """Names of sums that have not ended."""
        with reading_session(self._engine) as session:
            return list(session.scalars(select(SecureSumRow.name).where(SecureSumRow.stage.not_in(ENDED))))

    def _is_due(self, stored: Stored) -> bool:
        return stored[1].complete or self._clock() >= stored[0].closes_at

    def _close(self, session: Session, stored: Stored) -> None:
        """If it's due, and at no stage that `opened` ends."""
        row, one = stored
        if one.stage in (*ENDED, "unmask") or not self._is_due(stored):
            return
        with suppress(SumFailed):
            one.close()
            row.closes_at = self._clock() + timedelta(seconds=row.stage_sec)
        self._stored.write(session, stored)

    def _follow(self, session: Session, whole: Stored, parts: list[Stored]) -> None:
        """The whole stands where its slowest part does, and fails with too few of them."""
        row, one = whole
        assert one.record.split is not None
        left, least = [each for each in parts if each[1].stage not in ENDED], one.record.split.left
        if len(left) < least:
            why = next((part.record.reason for _, part in parts if part.record.reason), "")
            reason = f"{len(left)} of {len(parts)} groups are left; {least} are needed. The first that failed: {why}"
            self._stored.fail(session, whole, parts, reason, by_members=True)
            return
        one.record.stage = min((part.stage for _, part in left), key=STAGES.index)
        row.closes_at = max(part_row.closes_at for part_row, part in left if part.stage == one.stage)
        self._stored.write(session, whole)

    def _tell(self, name: str, pseudonym: str, ask: Callable[[Members], T]) -> T:
        with reading_session(self._engine) as session:
            return ask(self._stored.read_for(session, name, pseudonym)[1].members)

    def _take(self, name: str, pseudonym: str, take: Callable[[SecureSumServer], bool], note: Note) -> bool:
        with self._turn(name, pseudonym) as (session, one):
            if not (again := take(one)):
                note(session)
            return again

    @contextmanager
    def _turn(
        self, name: str, pseudonym: str, *, with_total: bool = False
    ) -> Iterator[tuple[Session, SecureSumServer]]:
        """This member's sum to change; stored when the block ends well, untouched when it raises."""
        with self._stored.writing() as session:
            mine = self._stored.read_for(session, name, pseudonym, to_change=True, with_total=with_total)
            yield session, mine[1]
            self._stored.write(session, mine, with_total=with_total)

    def sweep(self) -> None:
        """Remove what a kill left behind: ended sums, and after an hour broken uploads and sums without a row."""
        self._stored.sweep()


def _parts_due(one: SecureSumServer) -> int:
    split = one.record.split
    return 0 if split is None else split.parts_of(one.messages.count("keys"), one.record.terms)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(CHUNK_BYTES), b"")
