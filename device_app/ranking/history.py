"""Clicks as the graphs want them: 50 rows, left-padded, newest last, with a mask (ALGORITHMS 1.7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.wire.recall import CLICKS_LIMIT


def left_padded(clicks: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """[H, D] oldest first -> ([1, 50, D], mask [1, 50]); only the newest 50 are kept."""
    newest = clicks[-CLICKS_LIMIT:]
    padded = np.zeros((1, CLICKS_LIMIT, clicks.shape[1]), dtype=np.float32)
    mask = np.zeros((1, CLICKS_LIMIT), dtype=np.float32)
    if len(newest):
        padded[0, -len(newest) :] = newest
        mask[0, -len(newest) :] = 1.0
    return padded, mask
