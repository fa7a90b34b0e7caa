"""The queue of waiting rounds.

Rounds that change the same state run one after another, in the order in which they were requested. If the server is set
up to do so, a round also waits for enough devices. Rounds that change different state (`SystemSpec.changes`) run side
by side. A follow-up, ordered by the end of another round, goes before the queue, since it continues that round.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Engine, delete, select
from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables import FollowUpRow, QueuedRoundRow
from backend.federation.errors import NoLongerWaiting, RoundQueueFull, UnknownQueuedRound
from backend.federation.rounds.records import under_way
from backend.federation.strategies.strategy import RoundRequest
from backend.federation.systems.composition import ChangedState, SystemSpec
from protocol.rounds import QueuedRound

QUEUE_LIMIT = 16
"""The largest number of rounds that may wait at a time."""
KEPT = 100
"""How many entries are kept of rounds that no longer wait, so that their outcome can be shown."""
NUMBER_LIMIT = 10**9
CANCELLED = "cancelled by the operator"
UNKNOWN_CHANGES: ChangedState = "release"
"""The state that a system unknown to this version is assumed to change; most systems change it."""


class RoundQueue:
    """The queue of one server, stored in rows so that a restart changes nothing.

    devices: as in `RoundOpener`.
    """

    def __init__(
        self,
        engine: Engine,
        systems: Mapping[str, SystemSpec],
        clock: Callable[[], datetime],
        devices: Callable[[], int] | None = None,
    ) -> None:
        self._engine, self._systems, self._clock, self._devices = engine, systems, clock, devices

    def changes(self, system: str) -> ChangedState:
        """Return which state the rounds of a system change."""
        spec = self._systems.get(system)
        return UNKNOWN_CHANGES if spec is None else spec.changes

    def too_few(self, request: RoundRequest) -> int | None:
        """Return how many devices seem to wait if the round must wait for more of them, else None."""
        devices = request.cohort_minimum if self._devices is None else self._devices()
        return devices if devices < request.cohort_minimum else None

    def add(self, session: Session, request: RoundRequest) -> int:
        """Add a round and return its queue number; the oldest finished entries are removed.

        Raises RoundQueueFull.
        """
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
        """Return what a round with these changes has to wait for, or None if it may open now.

        Call it in the transaction that opens the round: another process may have opened or ordered a round meanwhile.

        follows: the round whose end ordered this one. queued: its queue number. If both are None, it was requested just
        now.
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
        """Return the waiting rounds, oldest first."""
        with reading_session(self._engine) as session:
            return [self._describe(session, row) for row in waiting(session)]

    def never_opened(self, limit: int = 5) -> list[QueuedRound]:
        """Return rounds that waited and never opened, newest first."""
        with reading_session(self._engine) as session:
            rows = session.scalars(
                select(QueuedRoundRow)
                .where(QueuedRoundRow.reason.is_not(None))
                .order_by(QueuedRoundRow.number.desc())
                .limit(limit)
            ).all()
            return [self._describe(session, row) for row in rows]

    def get(self, number: int) -> QueuedRound:
        """Return the queued round of this number, or its outcome. Raises UnknownQueuedRound."""
        with reading_session(self._engine) as session:
            return self._describe(session, _find(session, number))

    def give_up(self, number: int, reason: str) -> QueuedRound:
        """Take a round out of the queue. Raises UnknownQueuedRound or NoLongerWaiting."""
        with writing_session(self._engine) as session:
            row = _find(session, number, to_change=True)
            if row.opened is not None:
                raise NoLongerWaiting(f"It has opened as round-{row.opened}.", field="number")
            if row.reason is not None:
                raise NoLongerWaiting(f"It was removed from the queue: {row.reason}", field="number")
            row.reason = reason
            session.flush()
            return self._describe(session, row)

    def _changes_of(self, request: str) -> ChangedState:
        return self.changes(RoundRequest.from_json(request).system)

    def _describe(self, session: Session, row: QueuedRoundRow) -> QueuedRound:
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
    """Return the rows of the waiting rounds, oldest first."""
    return session.scalars(
        select(QueuedRoundRow)
        .where(QueuedRoundRow.opened.is_(None), QueuedRoundRow.reason.is_(None))
        .order_by(QueuedRoundRow.number)
    ).all()


def follow_ups(session: Session) -> Sequence[FollowUpRow]:
    """Return the unopened rounds that ended rounds have ordered, in the order of those."""
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
