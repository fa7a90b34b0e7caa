"""How new a piece of news is, as a term of its score."""

from __future__ import annotations

from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates


def age_hours(candidates: Candidates, now: datetime) -> NDArray[np.float64]:
    """[n]: hours since publication; news dated in the future counts as published now."""
    return np.maximum(0.0, (now.timestamp() - candidates.published_sec) / 3_600)


def recency(candidates: Candidates, now: datetime, half_life_hours: float) -> NDArray[np.float64]:
    """[n]: 1 for news of this moment, 1/2 after one half-life, and so on."""
    return np.exp2(-age_hours(candidates, now) / half_life_hours)
