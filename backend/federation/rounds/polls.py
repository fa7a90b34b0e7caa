"""How many devices seem to be waiting for a round, as far as a server can tell that knows none of them."""

from __future__ import annotations

import math
import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Engine, delete, func, or_, select

from backend.db.engine import reading_session, writing_session
from backend.db.tables_federation import PollCountRow

WINDOW_SEC = 30.0
"""Twice what devices wait between two polls at their usual settings, so that hardly any is missed."""
POLLS_KEPT = 100_000
TELL_SEC = 2.0
"""How often a process writes down what it has counted."""
SWEEP_AGE_SEC = 3_600.0


class PollCounter:
    """Counts questions for the round under way over the last half minute.

    A device makes several, about two at its usual settings, so where devices are meant their number is an estimate
    (`devices`); one that polls oftener, or a reader's page that asks too, make it larger. It opens rounds and sets a
    chance; nothing secret hangs on it, but who could forge many would leave honest devices no chance. So of one network
    address no more polls are counted than it may have places. Processes that serve devices together, of one machine or
    several, tell each other their counts by a row each of their database, two seconds old at most.

    Args:
        clock: the time, in UTC; it may be set forward and back.
        engine: of the database that all processes of this server share; None where there is one process.
        window_sec: over which is counted.
        places: that one source may have in a round; 0: any number.
        per_device: how many a waiting device makes within the window.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        engine: Engine | None = None,
        window_sec: float = WINDOW_SEC,
        places: int = 0,
        per_device: float = 1.0,
    ) -> None:
        self._clock, self._window, self._places = clock, timedelta(seconds=window_sec), places
        self.per_device = per_device
        self._polls: deque[tuple[datetime, str | None]] = deque()
        self._of_source: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._engine, self._process = engine, secrets.token_hex(8)
        self._told: datetime | None = None

    def note(self, source: str | None = None) -> None:
        """Count one poll of a device that waits for a round.

        source: where from (`ClientAddresses.source`), None for an address without bounds.
        """
        with self._lock:
            self._forget_old()
            if len(self._polls) >= POLLS_KEPT:
                return
            if source is not None:
                if self._places and self._of_source[source] >= self._places:
                    return
                self._of_source[source] += 1
            self._polls.append((self._clock(), source))

    def tell(self) -> None:
        """Let the other processes know; to be called often."""
        now = self._clock()
        since = None if self._told is None else now - self._told
        if self._engine is None or (since is not None and timedelta(0) <= since < timedelta(seconds=TELL_SEC)):
            return
        count = self._own()
        if not count and self._told is None:
            return
        self._told = now
        ended = timedelta(seconds=SWEEP_AGE_SEC)
        with writing_session(self._engine) as session:
            session.merge(PollCountRow(process=self._process, told_at=now, polls=count))
            session.execute(
                delete(PollCountRow).where(
                    PollCountRow.process != self._process,
                    or_(PollCountRow.told_at < now - ended, PollCountRow.told_at > now + ended),
                )
            )

    def waiting(self) -> int:
        """Questions within the window, to this process and to the others."""
        return self._own() + self._others()

    def devices(self) -> int:
        """About how many devices these come from, rounded up."""
        return math.ceil(self.waiting() / self.per_device)

    def fair_chance(self, places: int) -> float:
        """The chance for each check-in with which about `places` of the waiting devices get one: a draw without a list.

        Whoever polls first has no advantage within a window; who wasn't taken meets a new coin at its next poll.
        """
        return min(1.0, places / max(1, self.waiting()))

    def _own(self) -> int:
        with self._lock:
            self._forget_old()
            return len(self._polls)

    def _forget_old(self) -> None:
        """Also those that a clock which was set back has left in the future."""
        now = self._clock()
        while self._polls and not now - self._window < self._polls[0][0] <= now:
            source = self._polls.popleft()[1]
            if source is not None:
                self._of_source[source] -= 1
                if not self._of_source[source]:
                    del self._of_source[source]

    def _others(self) -> int:
        """What the others told within the window; a machine's clock may be ahead by as much."""
        if self._engine is None:
            return 0
        now = self._clock()
        told = select(func.coalesce(func.sum(PollCountRow.polls), 0)).where(
            PollCountRow.process != self._process,
            PollCountRow.told_at > now - self._window,
            PollCountRow.told_at < now + self._window,
        )
        with reading_session(self._engine) as session:
            return int(session.scalars(told).one())
