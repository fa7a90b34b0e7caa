"""How likely a piece of news is to be read by anybody, and how much content counts against that, in lists and in what
trains them.

Popularity dominates recall (docs/results/recall.md). Recency and editorial weight are what is known before anything is
counted; private counts (`backend.popularity.estimate`) lift news that are clicked more often than usual when displayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

SHARPNESS = 4.0
"""s: how much content counts against popularity, for unit vectors; what validation chose for the untrained encoder."""
HALF_LIFE_HOURS = 24.0
OLD_SHARE = 0.02
"""What age leaves at least: the oldest news of a pool stay within reach of a reader whose subject they are."""
WEIGHT_FLOOR = 0.2


Moments = NDArray[np.datetime64]
"""In microseconds, of UTC."""


def utc_moments(times: Sequence[datetime]) -> Moments:
    """Aware times as an array."""
    return np.array([time.astimezone(UTC).replace(tzinfo=None) for time in times], dtype="datetime64[us]")


def log_popularity(
    published_at: Moments,
    weights: NDArray[np.floating],
    now: datetime,
    *,
    lifts: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """log pop(i), float32 [n], up to a constant: log(recency) + log(editorial weight) + lift.

    published_at and weights [n] (0 to 1) make the prior; lifts [n] are those of `backend.popularity.estimate`, 0 where
    nothing is known. News dated in the future count as of now.
    """
    ages_hours = (utc_moments([now])[0] - published_at).astype(np.int64) / 1e6 / 3_600
    recency = np.maximum(0.5 ** (np.maximum(ages_hours, 0.0) / HALF_LIFE_HOURS), OLD_SHARE)
    logs: NDArray[np.float64] = np.log(recency * (WEIGHT_FLOOR + (1 - WEIGHT_FLOOR) * weights.astype(np.float64)))
    return (logs if lifts is None else logs + lifts).astype(np.float32)
