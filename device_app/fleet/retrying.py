"""Retries requests while the server is busy or unreachable, so that no answer ends a fleet."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable, DeviceError
from device_app.training.participant import may_pass

T = TypeVar("T")

TRIES = 30
WAIT_SEC = 1.0
WAIT_LIMIT_SEC = 60.0
BUSY = (429, 503)
CHANCE: random.Random = random.SystemRandom()


def is_busy(trouble: DeviceError) -> bool:
    """Return whether the server said that it is too busy now."""
    return isinstance(trouble, BackendRefused) and trouble.problem.status in BUSY


def passes(trouble: DeviceError) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(trouble, BackendRefused):
        return is_busy(trouble) or may_pass(trouble)
    return isinstance(trouble, BackendUnreachable | AnswerMalformed)


def pause_sec(trouble: DeviceError, tries: int = 0, chance: random.Random = CHANCE) -> float:
    """Return how many seconds to wait before the next try.

    That is the server's Retry-After if given, else it doubles each time. Up to half as much is added at random, so that
    a fleet doesn't return all at once.
    """
    asked = trouble.retry_after_sec if isinstance(trouble, BackendRefused) else None
    wanted = min(WAIT_LIMIT_SEC, WAIT_SEC * 2 ** min(tries, 10)) if asked is None else asked
    return wanted * chance.uniform(1.0, 1.5)


def patiently(
    step: Callable[[], T],
    waits: Callable[[DeviceError], bool] = is_busy,
    *,
    tries: int | None = TRIES,
    sleep: Callable[[float], object] = time.sleep,
    chance: random.Random = CHANCE,
) -> T:
    """Return what `step` returns, retrying while its error is worth waiting for.

    Raises the last error after so many tries (None: never), and any other error at once.
    """
    done = 0
    while True:
        try:
            return step()
        except DeviceError as trouble:
            done += 1
            if not waits(trouble) or (tries is not None and done >= tries):
                raise
            sleep(pause_sec(trouble, done - 1, chance))
