"""What went wrong in the background and has not gone well since."""

from __future__ import annotations

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
    """The last error of a background loop that has not gone well since.

    plain: whether its words are a sentence for readers; passing: whether it stands only while the backend is away,
    which every page says by itself.
    """

    loop: Loop
    at: datetime
    words: str
    plain: bool = True
    passing: bool = False


class LoopAlerts:
    """The last error of each background loop, for the reader to see; a step that goes well clears it.

    Args:
        plain: errors whose message is a sentence for readers.
        passing: errors that stand only while the backend is away.
    """

    def __init__(self, clock: Callable[[], datetime], plain: type[Exception], passing: type[Exception]) -> None:
        self._clock, self._plain, self._passing = clock, plain, passing
        self._lock = Lock()
        self._last: dict[Loop, tuple[LoopAlert, Exception]] = {}

    @contextmanager
    def of(self, loop: Loop) -> Iterator[None]:
        """Record what the block raises under this loop's name, and let it through."""
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
        """All that is wrong now, newest first."""
        with self._lock:
            found = [trouble for trouble, _ in self._last.values()]
        return tuple(sorted(found, key=lambda one: one.at, reverse=True))

    def any(self, kind: type[Exception]) -> bool:
        """Whether an error of this kind stands."""
        with self._lock:
            return any(isinstance(failed, kind) for _, failed in self._last.values())
