"""How many devices seem to be waiting for a round, as far as a server can tell that knows none of them."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

WINDOW_SEC = 30.0
"""Devices poll for rounds about this often."""
POLLS_KEPT = 100_000
TELL_SEC = 2.0
"""How often a process writes down what it has counted."""
SWEEP_AGE_SEC = 3_600.0


class PollCounter:
    """Counts questions for the round under way over the last half minute.

    An estimate: a device that polls oftener, a reader's page that asks too, or one who forges polls, make it larger.
    It opens rounds and sets a chance; nothing secret or safe hangs on it. Processes that serve devices together tell
    each other their counts by a file each, two seconds old at most.

    Args:
        clock: the time, in UTC.
        folder: which all processes of this server share; None where there is one.
        window_sec: over which is counted.
    """

    def __init__(
        self, clock: Callable[[], datetime], folder: Path | None = None, window_sec: float = WINDOW_SEC
    ) -> None:
        self._clock, self._window = clock, timedelta(seconds=window_sec)
        self._times: deque[datetime] = deque(maxlen=POLLS_KEPT)
        self._lock = threading.Lock()
        self._folder, self._name = folder, f"{secrets.token_hex(8)}.json"
        self._told: datetime | None = None

    def note(self) -> None:
        """Somebody has asked."""
        with self._lock:
            self._times.append(self._clock())

    def tell(self) -> None:
        """Let the other processes know; to be called often."""
        now = self._clock()
        if self._folder is None or (self._told is not None and now - self._told < timedelta(seconds=TELL_SEC)):
            return
        own, count = self._folder / self._name, self._own()
        if not count and self._told is None:
            return
        self._told = now
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = own.with_suffix(".part")
        unfinished.write_text(json.dumps({"at": now.isoformat(), "looks": count}), encoding="utf-8")
        unfinished.replace(own)
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another process's, renamed or swept meanwhile
                if time.time() - path.stat().st_mtime > SWEEP_AGE_SEC:
                    path.unlink()

    def waiting(self) -> int:
        """Questions within the window, to this process and to the others."""
        return self._own() + sum(self._others())

    def fair_chance(self, places: int) -> float:
        """The chance for each check-in with which about `places` of the waiting devices get one: a draw without a list.

        Whoever polls first has no advantage within a window; who wasn't taken meets a new coin at its next poll.
        """
        return min(1.0, places / max(1, self.waiting()))

    def _own(self) -> int:
        begin = self._clock() - self._window
        with self._lock:
            while self._times and self._times[0] <= begin:
                self._times.popleft()
            return len(self._times)

    def _others(self) -> Iterator[int]:
        if self._folder is None or not self._folder.is_dir():
            return
        begin = self._clock() - self._window
        for path in self._folder.glob("*.json"):
            if path.name == self._name:
                continue
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue  # swept meanwhile
            if datetime.fromisoformat(told["at"]) > begin:
                yield int(told["looks"])
