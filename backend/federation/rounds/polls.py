"""Estimate how many devices wait for a round, although the server can't identify them."""

from __future__ import annotations

import math
import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Engine, delete, func, or_, select

from backend.db.engine import reading_session, writing_session
from backend.db.tables import PollCountRow

WINDOW_SEC = 30.0
"""The time over which polls are counted: twice the usual interval between a device's polls, so few are missed."""
POLLS_KEPT = 100_000
PUBLISH_SEC = 2.0
"""The interval at which a process writes its count to the database."""
SWEEP_AGE_SEC = 3_600.0


class PollCounter:
    """Counts the polls for a round over the last half minute.

    A device polls several times within the window, about twice at its usual settings, so the number of devices is an
    estimate (`devices`); devices that poll more often, or a reader's page that polls too, make it too large. The
    estimate opens rounds and sets the chance of a place. Nothing secret depends on it, but a client that forges many
    polls would leave honest devices no chance. Polls of one network address are therefore counted only up to the number
    of places it may have. Processes that serve devices together, on one machine or several, share their counts through
    a row each in the database; these are at most two seconds old.

    Args:
        clock: returns the time in UTC; it may be set forward or back.
        engine: the database that all processes of this server share; None: there is one process.
        window_sec: the time over which polls are counted.
        places: how many places one source may have in a round; 0: any number.
        per_device: how often a waiting device polls within the window.
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
        self._published_at: datetime | None = None

    def note(self, source: str | None = None) -> None:
        """Count one poll of a device that waits for a round.

        source: `ClientAddresses.source` of the device; None for an address without limits.
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

    def publish(self) -> None:
        """Write this process's count for the other processes, at most every PUBLISH_SEC; call it often."""
        now = self._clock()
        since = None if self._published_at is None else now - self._published_at
        if self._engine is None or (since is not None and timedelta(0) <= since < timedelta(seconds=PUBLISH_SEC)):
            return
        count = self._own()
        if not count and self._published_at is None:
            return
        self._published_at = now
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
        """Return the number of polls within the window, over all processes."""
        return self._own() + self._others()

    def devices(self) -> int:
        """Return the estimated number of waiting devices, rounded up."""
        return math.ceil(self.waiting() / self.per_device)

    def fair_chance(self, places: int) -> float:
        """Return the admission probability that gives about `places` waiting devices a place.

        This approximates a draw from a list of devices. Within a window the first to poll has no advantage, because a
        device that was not drawn is drawn independently at its next poll.
        """
        return min(1.0, places / max(1, self.waiting()))

    def _own(self) -> int:
        with self._lock:
            self._forget_old()
            return len(self._polls)

    def _forget_old(self) -> None:
        """Drop polls outside the window.

        This includes polls that lie in the future since the clock was set back.
        """
        now = self._clock()
        while self._polls and not now - self._window < self._polls[0][0] <= now:
            source = self._polls.popleft()[1]
            if source is not None:
                self._of_source[source] -= 1
                if not self._of_source[source]:
                    del self._of_source[source]

    def _others(self) -> int:
        """Return the counts of other processes within the window.

        The clocks of other machines may be ahead by up to a window.
        """
        if self._engine is None:
            return 0
        now = self._clock()
        counts = select(func.coalesce(func.sum(PollCountRow.polls), 0)).where(
            PollCountRow.process != self._process,
            PollCountRow.told_at > now - self._window,
            PollCountRow.told_at < now + self._window,
        )
        with reading_session(self._engine) as session:
            return int(session.scalars(counts).one())
