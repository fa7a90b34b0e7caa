"""Waiting out a backend that is busy or away, so that no answer of it ends a fleet."""

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
    """Whether the backend said that it has too much to do now."""
    return isinstance(trouble, BackendRefused) and trouble.problem.status in BUSY


def passes(trouble: DeviceError) -> bool:
    """Whether the same request may be answered later."""
    if isinstance(trouble, BackendRefused):
        return is_busy(trouble) or may_pass(trouble)
    return isinstance(trouble, BackendUnreachable | AnswerMalformed)


def pause_sec(trouble: DeviceError, tries: int = 0, chance: random.Random = CHANCE) -> float:
    """How long to wait before the next try, in seconds.

    As long as the backend's Retry-After asks; otherwise twice as long each time. Up to half as much is added, drawn for
    each device, so that a fleet doesn't come back all at once.
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
    """What `step` returns, tried again while it raises trouble that is worth waiting for.

    Raises the last trouble after so many tries (None: never), and any other at once.
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
