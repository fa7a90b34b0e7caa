"""What went wrong in the background and has not gone well since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Lock


@dataclass(frozen=True)
class LoopAlert:
    """The last error of a background loop that has not gone well since."""

    loop: str
    at: datetime
    words: str


class LoopAlerts:
    """The last error of each background loop, for the reader to see; a step that goes well clears it."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._last: dict[str, tuple[LoopAlert, Exception]] = {}

    @contextmanager
    def of(self, loop: str) -> Iterator[None]:
        """Record what the block raises under this loop's name, and let it through."""
        try:
            yield
        except Exception as failed:
            words = str(failed) or type(failed).__name__
            with self._lock:
                self._last[loop] = (LoopAlert(loop, self._clock(), words), failed)
            raise
        with self._lock:
            self._last.pop(loop, None)

    def now(self) -> tuple[LoopAlert, ...]:
        """All that is wrong now, newest first."""
        with self._lock:
            found = [trouble for trouble, _ in self._last.values()]
        return tuple(sorted(found, key=lambda one: one.at, reverse=True))

    def any(self, kind: type[Exception]) -> bool:
        """Whether an error of this kind stands."""
        with self._lock:
            return any(isinstance(failed, kind) for _, failed in self._last.values())
