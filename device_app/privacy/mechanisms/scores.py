"""What both mechanisms on the basis ask of raw scores before they bound them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def check_sizes(basis_size: int, channels_limit: int) -> None:
    """Raises ValueError unless B and C_max are 1 or more."""
    if basis_size < 1 or channels_limit < 1:
        raise ValueError(f"basis_size and channels_limit must be 1 or more; got {basis_size}, {channels_limit}")


def checked(scores: NDArray[np.floating], basis_size: int, channels_limit: int) -> NDArray[np.float64]:
    """Raw scores [C, B] as doubles. Raises ValueError for another shape or a value not finite."""
    if scores.ndim != 2 or scores.shape[1] != basis_size or not 1 <= len(scores) <= channels_limit:
        raise ValueError(f"scores has shape {scores.shape}; expected 1 to {channels_limit} channels of {basis_size}")
    if not np.isfinite(scores).all():
        raise ValueError("scores has values that are not finite: nothing is released")
    return scores.astype(np.float64)
