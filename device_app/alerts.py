"""Tracks errors of background loops that haven't been resolved yet."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Literal

Loop = Literal["sync", "training", "texts", "copy"]
"""The background loops that can fail."""


@dataclass(frozen=True)
class LoopAlert:
    """The last unresolved error of a background loop.

    plain: whether its message is a sentence for readers. passing: whether it lasts only while the server is
    unreachable, which every page shows anyway.
    """

    loop: Loop
    at: datetime
    words: str
    plain: bool = True
    passing: bool = False


class LoopAlerts:
    """Stores the last error of each background loop for the reader; a successful step clears it.

    Args:
        plain: errors whose message is a sentence for readers.
        passing: errors that last only while the server is unreachable.
    """

    def __init__(self, clock: Callable[[], datetime], plain: type[Exception], passing: type[Exception]) -> None:
        self._clock, self._plain, self._passing = clock, plain, passing
        self._lock = Lock()
        self._last: dict[Loop, tuple[LoopAlert, Exception]] = {}

    @contextmanager
    def of(self, loop: Loop) -> Iterator[None]:
        """Record what the block raises under this loop's name, and re-raise it."""
        try:
            yield
        except Exception as failed:
            words = str(failed) or type(failed).__name__
            with self._lock:
                alert = LoopAlert(
                    loop, self._clock(), words, isinstance(failed, self._plain), isinstance(failed, self._passing)
                )
                self._last[loop] = (alert, failed)
            raise
        with self._lock:
            self._last.pop(loop, None)

    def now(self) -> tuple[LoopAlert, ...]:
        """Return all current alerts, newest first."""
        with self._lock:
            found = [trouble for trouble, _ in self._last.values()]
        return tuple(sorted(found, key=lambda one: one.at, reverse=True))

    def any(self, kind: type[Exception]) -> bool:
        """Return whether there is a current error of this kind."""
        with self._lock:
            return any(isinstance(failed, kind) for _, failed in self._last.values())
