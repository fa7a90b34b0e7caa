"""Stored secure sums: close their stages, open them, and keep them if the server is killed.

A sum is rows in the database and one object for its running sum; each message changes both in one transaction.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from backend.db.engine import empty_cache, reading_session, writing_session
from backend.db.tables import SecureSumRow
from backend.federation.deadlines import is_over
from backend.federation.errors import SharesAwaited, SumFailed
from backend.federation.secagg.exchange import MemberExchange
from backend.federation.secagg.graph import CohortSplit
from backend.federation.secagg.messages import ENDED, STAGES, ServerStage, SumRecord
from backend.federation.secagg.secure_sum import OpenedSum, SecureSumServer
from backend.federation.secagg.sum_files import Stored, StoredSums
from backend.storage.object_store import ObjectStore
from protocol.secagg import SumTerms

MASKED_TIMES = 2.0
"""How many times longer than any other stage the `masked` stage may last.

In it a device trains, draws its noise and sends its whole vector, which takes far longer than a key or a share if the
vector has hundreds of thousands of numbers.
"""


@dataclass(frozen=True)
class SumPoll:
    """The state of a sum at a poll.

    is_due: the stage has to be closed, or in the `unmask` stage the sum has to be opened. reason: why the sum failed.
    """

    stage: ServerStage
    is_due: bool
    reason: str | None


class SumStages:
    """Closes stages by the clock and opens sums.

    The stage of a split sum is that of its slowest part.

    Formal guarantees: a sum is opened from stored state without changing it, so a server killed while it applies a sum
    opens the same one again.

    Args:
        clock: returns the time in UTC.
        threads: number for unmasking; None: one for each processor.
    """

    def __init__(
        self, engine: Engine, stored: StoredSums, clock: Callable[[], datetime], *, threads: int | None = None
    ) -> None:
        self._engine, self._stored, self._clock = engine, stored, clock
        self._threads = threads or os.cpu_count() or 1

    def step(self, name: str) -> ServerStage:
        """Close the current stage if it is complete or its time is up.

        Returns the stage after that. A sum with too few members fails, and its record says why. `opened` ends stage
        unmask: that stage lasts until its deadline or until every secret has enough shares, which `poll` reports.
        """
        with self._stored.writing() as session:
            stored = self._stored.read(session, name, to_change=True)
            one = stored[1]
            if one.stage in ENDED:
                return one.stage
            if parts := self._stored.parts(session, stored, to_change=True):
                for each in parts:
                    self._close(session, each)
                self._follow(session, stored, parts)
            elif one.stage == "keys" and self._is_due(stored) and (count := _parts_due(one)):
                self._stored.split(session, stored, count, self._clock() + timedelta(seconds=stored[0].stage_sec))
            else:
                self._close(session, stored)
            return one.stage

    def poll(self, name: str) -> SumPoll:
        """Return the state of the sum from one read. Raises UnknownSum."""
        with reading_session(self._engine) as session:
            stored = self._stored.read(session, name)
            parts = [each for each in self._stored.parts(session, stored) if each[1].stage not in ENDED]
            one = stored[1]
            if one.stage in ENDED:
                is_due = False
            elif not parts:
                is_due = self._is_due(stored)
            elif early := [each for each in parts if each[1].stage != "unmask"]:
                is_due = any(self._is_due(each) for each in early)
            else:
                is_due = all(self._is_due(each) for each in parts)
            return SumPoll(one.stage, is_due, one.record.reason)

    def opened(self, name: str) -> OpenedSum:
        """Return the sum without its masks.

        The stored state stays unchanged until `SecureSumStore.finish`. Raises SumFailed, after which the sum is
        `failed`; SharesAwaited if shares are false and more may arrive, after which the sum is due once all have
        arrived or its time is up; or SumStageClosed at any other stage than unmask.
        """
        try:
            with reading_session(self._engine) as session:
                row, one = self._stored.read(session, name)
                left = one.leftover()
                empty_cache(session.connection())
                # Read only after the shares were released: holding both would set the peak memory of a sum.
                opened = self._stored.restore(session, row, with_total=True)
            return opened.unmask(left, threads=self._threads)
        except SumFailed as failed:
            if failed.by_members and self._waits_for_all(name):
                raise SharesAwaited from failed
            self.fail(name, failed.detail, by_members=failed.by_members, malicious=failed.malicious)
            raise

    def fail(self, name: str, reason: str, *, by_members: bool = False, malicious: Sequence[int] = ()) -> None:
        """End a sum that hasn't ended, with its parts, and delete its content.

        Arguments as in `SumFailed`.
        """
        with self._stored.writing() as session:
            stored = self._stored.read(session, name, to_change=True)
            parts = self._stored.parts(session, stored, to_change=True)
            self._stored.fail(session, stored, parts, reason, by_members=by_members, malicious=malicious)

    def _waits_for_all(self, name: str) -> bool:
        """Let the `unmask` stage wait for every survivor's shares.

        Returns False if all of them have arrived or the time is up.
        """
        with self._stored.writing() as session:
            mine = self._stored.read(session, name, to_change=True)
            row, one = mine
            if one.stage != "unmask" or stage_is_over(row, one.record.terms, self._clock()):
                return False
            one.record.needs_all = True
            self._stored.write(session, mine)
            return not one.complete

    def _is_due(self, stored: Stored) -> bool:
        row, one = stored
        return one.complete or stage_is_over(row, one.record.terms, self._clock())

    def _close(self, session: Session, stored: Stored) -> None:
        """Close the stage if it is due, except for the `unmask` stage, which `opened` ends."""
        row, one = stored
        if one.stage in (*ENDED, "unmask") or not self._is_due(stored):
            return
        with suppress(SumFailed):
            one.close()
            row.closes_at = self._clock() + _lasts(row.stage_sec, one.stage, one.record.terms)
        self._stored.write(session, stored)

    def _follow(self, session: Session, stored: Stored, parts: list[Stored]) -> None:
        """Set the whole sum to the stage of its slowest part, or fail it if too few parts are left."""
        row, one = stored
        assert one.record.split is not None
        left, least = [each for each in parts if each[1].stage not in ENDED], one.record.split.left
        if len(left) < least:
            why = next((part.record.reason for _, part in parts if part.record.reason), "")
            reason = f"{len(left)} of {len(parts)} groups are left; {least} are needed. The first that failed: {why}"
            self._stored.fail(session, stored, parts, reason, by_members=True)
            return
        one.record.stage = min((part.stage for _, part in left), key=STAGES.index)
        row.closes_at = max(part_row.closes_at for part_row, part in left if part.stage == one.stage)
        self._stored.write(session, stored)


def _parts_due(one: SecureSumServer) -> int:
    split = one.record.split
    return 0 if split is None else split.parts_of(one.messages.count("keys"), one.record.terms)


def times_beside_keys(terms: SumTerms) -> float:
    """Return the total duration of the stages after keys, in multiples of `stage_sec`.

    The `keys` stage of a round lasts as long as these stages together.
    """
    return (4 if terms.mode == "active" else 3) + MASKED_TIMES


def stage_is_over(row: SecureSumRow, terms: SumTerms, now: datetime) -> bool:
    """Return whether the time of the current stage of a sum or part is over."""
    return is_over(now, row.closes_at, _lasts(row.stage_sec, row.stage, terms))


def _lasts(stage_sec: float, stage: str, terms: SumTerms) -> timedelta:
    """Return the longest duration of a stage.

    The `keys` stage of a sum outside a round may be shorter.
    """
    times = {"keys": times_beside_keys(terms), "masked": MASKED_TIMES}.get(stage, 1.0)
    return timedelta(seconds=stage_sec * times)


TERMS_KEPT = 16  # of the sums used last; usually one or two are under way


class SecureSumStore:
    """All secure sums of a server, by name (the `round` of their terms).

    A sum begun with `split` is split into several when the `keys` stage closes (`graph`).

    exchange: receives and answers members' messages. stages: closes stages by the clock and opens sums.

    Formal guarantees: those of `exchange` and `stages`; and `finish` ends a sum in the transaction that applies it.

    Args:
        engine: a migrated database.
        objects: storage of running sums.
        clock: returns the time in UTC.
        threads: number for unmasking; None: one for each processor.
    """

    def __init__(
        self,
        engine: Engine,
        objects: ObjectStore,
        clock: Callable[[], datetime],
        *,
        threads: int | None = None,
    ) -> None:
        self._engine, self._clock = engine, clock
        self._stored = StoredSums(engine, objects)
        self.exchange = MemberExchange(engine, self._stored)
        self.stages = SumStages(engine, self._stored, clock, threads=threads)
        self._terms: dict[str, SumTerms] = {}
        self.sweep()

    def begin(self, terms: SumTerms, *, stage_sec: float, threshold: int | None = None) -> None:
        """Start a sum whose stages last at most `stage_sec` each.

        The `masked` stage may last MASKED_TIMES as long. Raises ValueError if there is a sum of that name.
        """
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
        """Start a sum in the transaction of the round that opens.

        keys_sec: the duration of the `keys` stage, during which the round waits for devices.
        """
        for name, seconds in (("stage_sec", stage_sec), ("keys_sec", keys_sec)):
            if not seconds > 0:
                raise ValueError(f"{name}: must be above 0, got {seconds}")
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
        """Return the terms of a sum; they never change, so they are cached. Raises UnknownSum."""
        known = self._terms.get(name)
        if known is None:
            with reading_session(self._engine) as session:
                known = self._stored.read(session, name)[1].record.terms
            if len(self._terms) >= TERMS_KEPT:
                self._terms.clear()
            self._terms[name] = known
        return known

    def stage(self, name: str) -> tuple[ServerStage, datetime]:
        """Return the stage of a sum and when it closes. Raises UnknownSum."""
        with reading_session(self._engine) as session:
            row, one = self._stored.read(session, name)
            return one.stage, row.closes_at

    def parts(self, name: str) -> tuple[str, ...]:
        """Return the names of the parts that haven't failed; none if the sum isn't split.

        Raises UnknownSum.
        """
        with reading_session(self._engine) as session:
            parts = self._stored.parts(session, self._stored.read(session, name))
            return tuple(row.name for row, part in parts if part.stage != "failed")

    def finish(self, session: Session, name: str) -> None:
        """Mark a sum and its parts as opened, and delete their messages.

        This is part of the transaction that applies them. Running sums stay on disk until `clear`, since the
        transaction may still be rolled back.
        """
        stored = self._stored.read(session, name, to_change=True)
        for part in self._stored.parts(session, stored, to_change=True):
            if part[1].stage not in ENDED:
                part[1].finish()
                self._stored.write(session, part)
        stored[1].finish()
        self._stored.write(session, stored)

    def clear(self) -> None:
        """Delete the running sums of all ended sums, whichever process ended them.

        A sum's row names its object until the object is deleted, so after a kill the next call deletes it.
        """
        self._stored.clear()

    def under_way(self) -> list[str]:
        """Return the names of sums that have not ended."""
        with reading_session(self._engine) as session:
            return list(session.scalars(select(SecureSumRow.name).where(SecureSumRow.stage.not_in(ENDED))))

    def sweep(self) -> None:
        """Delete what a crash left behind.

        These are the running sums of ended sums, and, after an hour, broken uploads and running sums without a row.
        """
        self._stored.sweep()
