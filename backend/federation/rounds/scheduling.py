"""The operator's schedule and pause switch for rounds.

They are kept in one row, so a restart changes nothing.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables import ScheduleRow
from backend.errors import OwnfeedError, may_pass
from backend.federation.errors import RoundImpossible, RoundUnderWay
from backend.federation.rounds.opening import RoundOpener
from backend.federation.rounds.selection import PollCounter
from backend.federation.strategies.strategy import RoundRequest

_log = logging.getLogger(__name__)

EVERY_MINUTES_LIMIT = 7 * 24 * 60.0


@dataclass(frozen=True)
class Schedule:
    """Opens a round at a fixed interval, when enough devices wait, or when both hold.

    If both are set, both must hold. order: the round to open; rows and the API use that name. Its admission is set when
    it opens, from the number of waiting devices (`PollCounter.fair_chance`).
    """

    order: RoundRequest
    every_minutes: float | None = None
    waiting: int | None = None

    def __post_init__(self) -> None:
        if self.every_minutes is None and self.waiting is None:
            raise RoundImpossible("A schedule needs a time or a number of devices.", field="every_minutes")
        if self.every_minutes is not None and not 0 < self.every_minutes <= EVERY_MINUTES_LIMIT:
            raise RoundImpossible(
                f"every_minutes is out of range: {self.every_minutes:g}.",
                field="every_minutes",
                limit=f"above 0, at most {EVERY_MINUTES_LIMIT:g}",
            )
        if self.waiting is not None and self.waiting < 1:
            raise RoundImpossible(f"waiting is out of range: {self.waiting}.", field="waiting", limit="at least 1")

    def is_due(self, now: datetime, last: datetime | None, waiting: int) -> bool:
        """Return whether a round is due.

        `last` is when the schedule last opened a round or tried to. A `last` in the future comes from a clock that was
        wrong.
        """
        if self.waiting is not None and waiting < self.waiting:
            return False
        if self.every_minutes is None or last is None:
            return True
        return not timedelta(0) <= now - last < timedelta(minutes=self.every_minutes)

    def to_json(self) -> str:
        """Return the schedule as stored in its row."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the schedule that `to_json` wrote."""
        read = json.loads(text)
        return cls(RoundRequest(**read.pop("order")), **read)


@dataclass(frozen=True)
class ScheduleStatus:
    """The present content of the row. trouble: why the last scheduled round was not opened."""

    paused: bool
    schedule: Schedule | None
    last: datetime | None
    trouble: str | None


class RoundScheduler:
    """Lets the operator pause, resume and schedule rounds.

    While rounds are paused none opens, whoever requests it, no device gets a place, and ordered rounds wait. Devices
    that already have a place continue, since stopping them would waste their privacy cost.
    """

    def __init__(self, engine: Engine, opener: RoundOpener, polls: PollCounter, clock: Callable[[], datetime]) -> None:
        self._engine, self._opener, self._polls, self._clock = engine, opener, polls, clock

    def status(self) -> ScheduleStatus:
        """Return whether rounds are paused, the schedule, and the last opening's outcome."""
        with reading_session(self._engine) as session:
            row = session.get(ScheduleRow, 1)
            if row is None:
                return ScheduleStatus(False, None, None, None)
            schedule = None if row.schedule is None else Schedule.from_json(row.schedule)
            return ScheduleStatus(row.paused, schedule, row.last, row.trouble)

    def pause(self) -> ScheduleStatus:
        """Open no rounds until `resume`."""
        return self._write(lambda row: setattr(row, "paused", True))

    def resume(self) -> ScheduleStatus:
        """Open rounds again; waiting ones open at the next tick."""
        return self._write(lambda row: setattr(row, "paused", False))

    def set(self, schedule: Schedule | None) -> ScheduleStatus:
        """Replace or remove the schedule.

        Raises what opening such a round would raise, except for rounds under way.
        """
        if schedule is not None:
            self._opener.check(schedule.order)

        def change(row: ScheduleRow) -> None:
            row.schedule = None if schedule is None else schedule.to_json()
            row.last = row.trouble = None

        return self._write(change)

    def begin(self, schedule: Schedule) -> bool:
        """Set a schedule if none was ever set or removed; its first round opens after one interval.

        Returns False and changes nothing once the operator has set or removed a schedule.
        """
        with writing_session(self._engine) as session:
            if session.get(ScheduleRow, 1) is not None:
                return False
            row = _row(session)
            row.schedule, row.last = schedule.to_json(), self._clock()
        return True

    def open_due(self) -> None:
        """Open the scheduled round if it is due and would give a result.

        If it can't be opened, the reason is kept and the opening is tried again later, or at the next tick if only the
        storage or the database did not answer.
        """
        status = self.status()
        schedule, now = status.schedule, self._clock()
        # Counting the waiting devices takes a database query, so it is done only when the time has come.
        if status.paused or schedule is None or not schedule.is_due(now, status.last, schedule.waiting or 0):
            return
        if not schedule.is_due(now, status.last, self._polls.devices()):
            return
        queue = self._opener.queue
        with reading_session(self._engine) as session:
            if queue.held_by(session, queue.changes(schedule.order.system), follows=None, queued=None):
                return
        chance = self._polls.fair_chance(schedule.order.cohort)
        trouble = None
        try:
            trouble = self._opener.why_not(schedule.order, self._polls.devices())
            if trouble is None:
                self._opener.open(replace(schedule.order, admission=chance))
        except RoundUnderWay:
            return
        except OwnfeedError as refused:
            if may_pass(refused):
                _log.warning("the scheduled round waits: %s", refused)
                return
            trouble = str(refused)

        def note(row: ScheduleRow) -> None:
            row.last, row.trouble = now, trouble

        self._write(note)

    def _write(self, change: Callable[[ScheduleRow], None]) -> ScheduleStatus:
        with writing_session(self._engine) as session:
            change(_row(session))
        return self.status()


def _row(session: Session) -> ScheduleRow:
    row = session.get(ScheduleRow, 1)
    if row is None:
        row = ScheduleRow(only=1, paused=False)
        session.add(row)
    return row
