"""The stages of secure sums: when each closes, where a sum that is split stands, and the opened sum at their end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.allocator import give_free_pages_back
from backend.db.engine import empty_cache, reading_session
from backend.db.tables_federation import SecureSumRow
from backend.federation.deadlines import is_over
from backend.federation.secagg.errors import SharesAwaited, SumFailed
from backend.federation.secagg.record import ENDED, STAGES, ServerStage
from backend.federation.secagg.secure_sum import OpenedSum, SecureSumServer
from backend.federation.secagg.sum_files import Stored, StoredSums
from device_app.wire.secagg import SumTerms

MASKED_TIMES = 2.0
"""So much longer than the other stages stage masked lasts at most: a device trains, draws its noise and sends all its
numbers there, which with a third of a million of them takes far longer than any key or share."""


@dataclass(frozen=True)
class SumPoll:
    """is_due: the stage is to be closed, or at unmask the sum to be opened. reason: why it failed."""

    stage: ServerStage
    is_due: bool
    reason: str | None


class SumStages:
    """Closes stages by the clock and opens sums. A sum that is split stands where its slowest part does.

    Formal guarantees: a sum is opened from stored state without changing it, so a server killed while it applies a sum
    opens the same one again.

    Args:
        clock: the time, in UTC.
        threads: for unmasking; None is one for each processor.
    """

    def __init__(
        self, engine: Engine, stored: StoredSums, clock: Callable[[], datetime], *, threads: int | None = None
    ) -> None:
        self._engine, self._stored, self._clock = engine, stored, clock
        self._threads = threads or os.cpu_count() or 1

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

    def opened(self, name: str) -> OpenedSum:
        """The sum without its masks; what is stored stays as it is until `SecureSumStore.finish`.

        Raises SumFailed, after which the sum is `failed`; SharesAwaited if shares are false and more may come, after
        which the sum is due when all have come or its time is over; or SumStageClosed at another stage than unmask.
        """
        try:
            with reading_session(self._engine) as session:
                row, one = self._stored.read(session, name)
                left = one.leftover()
                empty_cache(session.connection())
                give_free_pages_back()
                # Read when the shares are done with: the two together would be the most memory that a sum takes.
                opened = self._stored.restore(session, row, with_total=True)
            unmasked = opened.unmask(left, threads=self._threads)
            give_free_pages_back()  # before the sum becomes numbers of twice its size
            return unmasked
        except SumFailed as failed:
            if failed.by_members and self._waits_for_all(name):
                raise SharesAwaited from failed
            self.fail(name, failed.detail, by_members=failed.by_members, liars=failed.liars)
            raise

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
            if one.stage != "unmask" or stage_is_over(row, one.record.terms, self._clock()):
                return False
            one.record.needs_all = True
            self._stored.write(session, mine)
            return not one.complete

    def _is_due(self, stored: Stored) -> bool:
        row, one = stored
        return one.complete or stage_is_over(row, one.record.terms, self._clock())

    def _close(self, session: Session, stored: Stored) -> None:
        """If it's due, and at no stage that `opened` ends."""
        row, one = stored
        if one.stage in (*ENDED, "unmask") or not self._is_due(stored):
            return
        with suppress(SumFailed):
            one.close()
            row.closes_at = self._clock() + _lasts(row.stage_sec, one.stage, one.record.terms)
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


def _parts_due(one: SecureSumServer) -> int:
    split = one.record.split
    return 0 if split is None else split.parts_of(one.messages.count("keys"), one.record.terms)


def times_beside_keys(terms: SumTerms) -> float:
    """How many times `stage_sec` the stages after keys last together; stage keys of a round lasts as long as they."""
    return (4 if terms.mode == "active" else 3) + MASKED_TIMES


def stage_is_over(row: SecureSumRow, terms: SumTerms, now: datetime) -> bool:
    """Whether the time of the stage at which a sum, or a part of one, stands is over."""
    return is_over(now, row.closes_at, _lasts(row.stage_sec, row.stage, terms))


def _lasts(stage_sec: float, stage: str, terms: SumTerms) -> timedelta:
    """At most: stage keys of a sum that is no round's may be shorter."""
    times = {"keys": times_beside_keys(terms), "masked": MASKED_TIMES}.get(stage, 1.0)
    return timedelta(seconds=stage_sec * times)
