"""How much of the reader's recent reading each interest makes up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def counts(labels: NDArray[np.int64]) -> tuple[int, ...]:
    """|H_c|: clicks of each channel, channel 0 first. Empty without clicks."""
    return tuple(int(n) for n in np.bincount(labels)) if len(labels) else ()


def quotas(labels: NDArray[np.int64], channels_limit: int) -> NDArray[np.float32]:
    """q_c = |H_c| / H for every channel up to C_max (ALGORITHMS 2.3, step 7); 0 for channels without clicks.

    They sum to 1, or to 0 without clicks.
    """
    held = np.bincount(labels, minlength=channels_limit)
    return (held / max(1, len(labels))).astype(np.float32)
