"""How many devices seem to be waiting for a round, as far as a server can tell that knows none of them."""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

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
    address no more polls are counted than it may have places. Processes that serve devices together tell each other
    their counts by a file each, two seconds old at most.

    Args:
        clock: the time, in UTC; it may be set forward and back.
        folder: which all processes of this server share; None where there is one.
        window_sec: over which is counted.
        places: that one source may have in a round; 0: any number.
        per_device: how many a waiting device makes within the window.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        folder: Path | None = None,
        window_sec: float = WINDOW_SEC,
        places: int = 0,
        per_device: float = 1.0,
    ) -> None:
        self._clock, self._window, self._places = clock, timedelta(seconds=window_sec), places
        self.per_device = per_device
        self._polls: deque[tuple[datetime, str | None]] = deque()
        self._of_source: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._folder, self._name = folder, f"{secrets.token_hex(8)}.json"
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
        if self._folder is None or (since is not None and timedelta(0) <= since < timedelta(seconds=TELL_SEC)):
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

    def _others(self) -> Iterator[int]:
        if self._folder is None or not self._folder.is_dir():
            return
        now = self._clock()
        for path in self._folder.glob("*.json"):
            if path.name == self._name:
                continue
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue  # swept meanwhile
            if now - self._window < datetime.fromisoformat(told["at"]) <= now + timedelta(seconds=TELL_SEC):
                yield int(told["looks"])
