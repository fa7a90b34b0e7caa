"""Who gets a place in a round.

Devices have no identity, so the server can't draw from a list of them: it throws a coin for each check-in. A device
that was not taken looks again later and meets a new coin, so every waiting device has the same chance at every look.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable

_SOURCE = secrets.SystemRandom()


def places(cohort: int, over_selection: float) -> int:
    """How many offers go out for `cohort` wanted updates; more than 1 makes up for devices that vanish."""
    return math.ceil(cohort * over_selection)


def admitted(rate: float, uniform: Callable[[], float] = _SOURCE.random) -> bool:
    """A coin that shows heads with probability `rate`; 1 takes everybody as they come."""
    return rate >= 1.0 or uniform() < rate


def draw_pseudonym() -> str:
    """A name for one device in one round: 192 random bits, linked to nothing."""
    return secrets.token_urlsafe(24)
