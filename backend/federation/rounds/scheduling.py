"""When rounds open by themselves, and whether any may open at all. It's one row, so a restart changes nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from backend.db.engine import reading_session, writing_session
from backend.db.tables_federation import ScheduleRow
from backend.errors import OwnfeedError, may_pass
from backend.federation.errors import RoundImpossible, RoundUnderWay
from backend.federation.rounds.opening import RoundOpener
from backend.federation.rounds.polls import PollCounter
from backend.federation.strategies.strategy import RoundRequest

_log = logging.getLogger(__name__)

EVERY_MINUTES_LIMIT = 7 * 24 * 60.0


@dataclass(frozen=True)
class Schedule:
    """A round opens every so many minutes, or when so many devices wait, or, with both, when both are true.

    order: the round that is opened, by the name that rows and the API have for it. Its admission is set at the
    opening, from the devices that wait (`PollCounter.fair_chance`).
    """

    order: RoundRequest
    every_minutes: float | None = None
    waiting: int | None = None

    def __post_init__(self) -> None:
        if self.every_minutes is None and self.waiting is None:
            raise RoundImpossible("A schedule needs a time or a number of devices.", field="every_minutes")
        if self.every_minutes is not None and not 0 < self.every_minutes <= EVERY_MINUTES_LIMIT:
            raise RoundImpossible(
                "every_minutes is out of its limits.",
                field="every_minutes",
                limit=f"above 0, at most {EVERY_MINUTES_LIMIT:g}",
            )
        if self.waiting is not None and self.waiting < 1:
            raise RoundImpossible("waiting is out of its limits.", field="waiting", limit="at least 1")

    def is_due(self, now: datetime, last: datetime | None, waiting: int) -> bool:
        """last: when it last opened a round, or tried to. One in the future is of a clock that was wrong."""
        if self.waiting is not None and waiting < self.waiting:
            return False
        if self.every_minutes is None or last is None:
            return True
        return not timedelta(0) <= now - last < timedelta(minutes=self.every_minutes)

    def to_json(self) -> str:
        """The schedule as the row keeps it; what is as usual is left out, as in a `RoundRequest`."""
        when = {name: value for name in ("every_minutes", "waiting") if (value := getattr(self, name)) is not None}
        return json.dumps({"order": json.loads(self.order.to_json())} | when)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The schedule of a row that `to_json` wrote."""
        read = json.loads(text)
        return cls(RoundRequest(**read.pop("order")), **read)


@dataclass(frozen=True)
class ScheduleStatus:
    """What the row says now. trouble: why the last scheduled round was not opened."""

    paused: bool
    schedule: Schedule | None
    last: datetime | None
    trouble: str | None


class RoundScheduler:
    """The operator's say over when rounds open.

    While paused no round opens, whoever asks for it, and no device gets a place; what a conclusion has ordered waits.
    Devices that have their places go on, since stopping them half-way would cost them for nothing.
    """

    def __init__(self, engine: Engine, opener: RoundOpener, polls: PollCounter, clock: Callable[[], datetime]) -> None:
        self._engine, self._opener, self._polls, self._clock = engine, opener, polls, clock

    def status(self) -> ScheduleStatus:
        """Whether rounds are paused, by which schedule they open, and how the last opening went."""
        with reading_session(self._engine) as session:
            row = session.get(ScheduleRow, 1)
            if row is None:
                return ScheduleStatus(False, None, None, None)
            schedule = None if row.schedule is None else Schedule.from_json(row.schedule)
            return ScheduleStatus(row.paused, schedule, row.last, row.trouble)

    def pause(self) -> ScheduleStatus:
        """Open nothing more until `resume`."""
        return self._write(lambda row: setattr(row, "paused", True))

    def resume(self) -> ScheduleStatus:
        """Go on; what waited opens at the next tick."""
        return self._write(lambda row: setattr(row, "paused", False))

    def set(self, schedule: Schedule | None) -> ScheduleStatus:
        """Replace the schedule, or take it away. Raises what opening such a round would, but for one under way."""
        if schedule is not None:
            self._opener.check(schedule.order)

        def change(row: ScheduleRow) -> None:
            row.schedule = None if schedule is None else schedule.to_json()
            row.last = row.trouble = None

        return self._write(change)

    def begin(self, schedule: Schedule) -> bool:
        """Set a schedule where nobody has set or removed one; its first round is a whole interval away.

        False, and nothing changes, once the operator has said anything: also that there shall be none.
        """
        with writing_session(self._engine) as session:
            if session.get(ScheduleRow, 1) is not None:
                return False
            row = _row(session)
            row.schedule, row.last = schedule.to_json(), self._clock()
        return True

    def open_due(self) -> None:
        """Open the scheduled round if its time has come and it would tell something; why it isn't opened is kept, and
        it's tried again later: at the next tick already where storage or database don't answer."""
        status = self.status()
        schedule, now = status.schedule, self._clock()
        # Whether enough devices wait is asked only once the time has come: it's asked of the database.
        if status.paused or schedule is None or not schedule.is_due(now, status.last, schedule.waiting or 0):
            return
        if not schedule.is_due(now, status.last, self._polls.devices()):
            return
        queue = self._opener.queue
        due_since = status.last and status.last + timedelta(minutes=schedule.every_minutes or 0)
        if due_since is not None and queue.is_anothers(schedule.order.system, due_since):
            return
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
