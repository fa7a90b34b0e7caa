"""Rounds that wait their turn: those that change the same run one after another, in the order they were asked for; and,
where the server is told to, for their devices.

Rounds that change nothing in common (`SystemSpec.changes`) run side by side. What another round's end has ordered goes
before what waits here, since it is the rest of a round that has begun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Engine, delete, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables_federation import FollowUpRow, QueuedRoundRow
from backend.federation.errors import NoLongerWaiting, RoundQueueFull, UnknownQueuedRound
from backend.federation.rounds.records import under_way
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems.system import ChangedState, SystemSpec
from device_app.wire.rounds import QueuedRound

QUEUE_LIMIT = 16
"""Rounds that may wait at a time."""
KEPT = 100
"""Rounds that wait no longer of which it is still told what became of them."""
NUMBER_LIMIT = 10**9
CANCELLED = "cancelled by the operator"
LEFT_TO_OTHERS = timedelta(hours=1)
"""In a rolling upgrade servers of a newer version may run systems that this one does not know. What is of such a system
is theirs for so long; then it is taken for one that no version runs any more."""
UNKNOWN_CHANGES: ChangedState = "release"
"""Of a system that this version doesn't run any more: as if it changed what most do."""


class RoundQueue:
    """The queue of one server. All of it is rows, so a restart changes nothing. devices: as of `RoundOpener`."""

    def __init__(
        self,
        engine: Engine,
        systems: Mapping[str, SystemSpec],
        clock: Callable[[], datetime],
        devices: Callable[[], int] | None = None,
    ) -> None:
        self._engine, self._systems, self._clock, self._devices = engine, systems, clock, devices

    def changes(self, system: str) -> ChangedState:
        """What rounds of a system change."""
        spec = self._systems.get(system)
        return UNKNOWN_CHANGES if spec is None else spec.changes

    def is_anothers(self, system: str, since: datetime) -> bool:
        """Whether a round of this system, due since then, is left to servers of another version."""
        return system not in self._systems and self._clock() - since < LEFT_TO_OTHERS

    def too_few(self, request: RoundRequest) -> int | None:
        """How many devices seem to wait, where these are fewer than a round needs and it is to wait for them."""
        devices = request.cohort_minimum if self._devices is None else self._devices()
        return devices if devices < request.cohort_minimum else None

    def add(self, session: Session, request: RoundRequest) -> int:
        """Let a round wait; returns its number here. Raises RoundQueueFull. Oldest entries that ended are forgotten."""
        if len(waiting(session)) >= QUEUE_LIMIT:
            raise RoundQueueFull(QUEUE_LIMIT)
        row = QueuedRoundRow(request=request.to_json(), queued_at=self._clock())
        session.add(row)
        session.flush()
        session.execute(
            delete(QueuedRoundRow).where(
                QueuedRoundRow.number <= row.number - KEPT,
                QueuedRoundRow.opened.is_not(None) | QueuedRoundRow.reason.is_not(None),
            )
        )
        return row.number

    def held_by(
        self, session: Session, changes: ChangedState, *, follows: int | None, queued: int | None
    ) -> str | None:
        """What a round with these changes would have to wait for; None where it may open now.

        To be asked in the transaction that opens it: another process may have opened or ordered a round meanwhile.

        follows: the round whose end has ordered it; queued: its number here. Neither: it was asked for just now.
        """
        for row in under_way(session):
            if self.changes(row.system) == changes:
                return f"round-{row.number}"
        ordered = [each.after for each in follow_ups(session) if self._changes_of(each.request) == changes]
        if follows is not None:
            if follows not in ordered:
                return f"round-{follows}"
            return None if ordered[0] == follows else f"round-{ordered[0]}"
        if ordered:
            return f"round-{ordered[0]}"
        before = [each.number for each in waiting(session) if self._changes_of(each.request) == changes]
        if queued is None:
            return f"number {before[0]} of the queue" if before else None
        return None if before[:1] == [queued] else f"number {before[0] if before else queued} of the queue"

    def waiting(self) -> list[QueuedRound]:
        """Those that wait, oldest first."""
        with reading_session(self._engine) as session:
            return [self._told(session, row) for row in waiting(session)]

    def never_opened(self, limit: int = 5) -> list[QueuedRound]:
        """Those that waited and never opened, newest first."""
        with reading_session(self._engine) as session:
            rows = session.scalars(
                select(QueuedRoundRow)
                .where(QueuedRoundRow.reason.is_not(None))
                .order_by(QueuedRoundRow.number.desc())
                .limit(limit)
            ).all()
            return [self._told(session, row) for row in rows]

    def get(self, number: int) -> QueuedRound:
        """One that waits, or what became of it. Raises UnknownQueuedRound."""
        with reading_session(self._engine) as session:
            return self._told(session, _find(session, number))

    def give_up(self, number: int, reason: str) -> QueuedRound:
        """Take one out of the queue. Raises UnknownQueuedRound, or NoLongerWaiting."""
        with writing_session(self._engine) as session:
            row = _find(session, number, to_change=True)
            if row.opened is not None:
                raise NoLongerWaiting(f"It has opened as round-{row.opened}.", field="number")
            if row.reason is not None:
                raise NoLongerWaiting(f"It was taken out of the queue: {row.reason}", field="number")
            row.reason = reason
            session.flush()
            return self._told(session, row)

    def _changes_of(self, request: str) -> ChangedState:
        return self.changes(RoundRequest.from_json(request).system)

    def _told(self, session: Session, row: QueuedRoundRow) -> QueuedRound:
        request, place, waits_for, devices = RoundRequest.from_json(row.request), None, None, None
        if row.opened is None and row.reason is None:
            changes = self.changes(request.system)
            same = [each.number for each in waiting(session) if self._changes_of(each.request) == changes]
            place = 1 + same.index(row.number)
            waits_for = next(
                (f"round-{each.number}" for each in under_way(session) if self.changes(each.system) == changes), None
            )
            devices = self.too_few(request) if place == 1 and waits_for is None else None
        return QueuedRound(
            number=row.number,
            system=request.system,
            cohort=request.cohort,
            cohort_minimum=request.cohort_minimum,
            seconds=request.seconds,
            queued_at=row.queued_at,
            place=place,
            waits_for=waits_for,
            devices=devices,
            opened=None if row.opened is None else f"round-{row.opened}",
            reason=row.reason,
        )


def waiting(session: Session) -> Sequence[QueuedRoundRow]:
    """Rows of those that wait, oldest first."""
    return session.scalars(
        select(QueuedRoundRow)
        .where(QueuedRoundRow.opened.is_(None), QueuedRoundRow.reason.is_(None))
        .order_by(QueuedRoundRow.number)
    ).all()


def follow_ups(session: Session) -> Sequence[FollowUpRow]:
    """Rounds that others' ends have ordered and that are still to be opened, in the order of those."""
    return session.scalars(
        select(FollowUpRow)
        .where(FollowUpRow.opened.is_(None), FollowUpRow.reason.is_(None))
        .order_by(FollowUpRow.after)
    ).all()


def _find(session: Session, number: int, *, to_change: bool = False) -> QueuedRoundRow:
    row = session.get(QueuedRoundRow, number, with_for_update=to_change)
    if row is None:
        raise UnknownQueuedRound
    return row
