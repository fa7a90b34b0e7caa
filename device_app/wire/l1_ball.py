"""How a channel's scores are bounded as a whole: by the device before noise, by the server to know what is usual."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def onto_l1_ball(point: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """The nearest point with L1 norm at most `radius` (Duchi et al., ICML 2008, figure 1)."""
    sizes = np.abs(point)
    if sizes.sum() <= radius:
        return point
    falling = np.sort(sizes)[::-1]
    excess = np.cumsum(falling) - radius
    last = np.flatnonzero(falling > excess / np.arange(1, len(point) + 1))[-1]
    projected: NDArray[np.float64] = np.sign(point) * np.maximum(sizes - excess[last] / (last + 1), 0.0)
    return projected
