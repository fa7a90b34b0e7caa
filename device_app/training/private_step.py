"""A device's own step on its private parameters (LSTUR's reader vector, ALGORITHMS 7)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

PRIVATE_RATE = 0.1
"""Of plain gradient descent, one step a round: .2 at most where a score is <u, d> with unit vectors d."""

Tensors = Mapping[str, NDArray[np.float32]]


def stepped(values: Tensors, gradients: Tensors, rate: float = PRIVATE_RATE) -> Tensors:
    """values - rate * gradients; what is missing among the values, or has another shape, starts at zero."""
    moved = {}
    for name, gradient in gradients.items():
        value = values.get(name)
        start = value if value is not None and value.shape == gradient.shape else np.zeros_like(gradient)
        moved[name] = (start - np.float32(rate) * gradient).astype(np.float32)
    return moved
