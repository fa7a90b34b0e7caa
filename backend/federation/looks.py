"""How many devices seem to be waiting for a round, as far as a server can tell that knows none of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

WINDOW_SEC = 30.0
"""Devices look for rounds about this often."""
LOOKS_KEPT = 100_000


class Looks:
    """Counts questions for the round under way over the last half minute.

    An estimate: a device that looks oftener, a reader's page that asks too, or one who forges looks, make it larger,
    and each worker process sees its own share. It opens rounds and sets a chance; nothing secret or safe hangs on it.
    """

    def __init__(self, clock: Callable[[], datetime], window_sec: float = WINDOW_SEC) -> None:
        self._clock, self._window = clock, timedelta(seconds=window_sec)
        self._times: deque[datetime] = deque(maxlen=LOOKS_KEPT)
        self._lock = threading.Lock()

    def note(self) -> None:
        """Somebody has asked."""
        with self._lock:
            self._times.append(self._clock())

    def waiting(self) -> int:
        """Questions within the window."""
        begin = self._clock() - self._window
        with self._lock:
            while self._times and self._times[0] <= begin:
                self._times.popleft()
            return len(self._times)

    def fair_chance(self, places: int) -> float:
        """The chance for each check-in with which about `places` of the waiting devices get one: a draw without a list.

        Whoever looks first has no advantage within a window; who wasn't taken meets a new coin at its next look.
        """
        return min(1.0, places / max(1, self.waiting()))
