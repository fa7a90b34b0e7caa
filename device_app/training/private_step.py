"""A device's own step on its private parameters (LSTUR's reader vector, ALGORITHMS 7)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.shared import PREFIX, is_private
from device_app.wire.releases import ModelEntry

PRIVATE_RATE = 0.1
"""Of plain gradient descent, one step a round: .2 at most where a score is <u, d> with unit vectors d."""

Tensors = Mapping[str, NDArray[np.float32]]


def private_gradients(tensors: Tensors, model: ModelEntry | None) -> Tensors:
    """The gradients of an update that stay here, by parameter: neither clipped nor noisy. See `shared_part`."""
    return {name.removeprefix(PREFIX): each for name, each in tensors.items() if is_private(name, model)}


def stepped(values: Tensors, gradients: Tensors, rate: float = PRIVATE_RATE) -> Tensors:
    """values - rate * gradients; what is missing among the values, or has another shape, starts at zero."""
    moved = {}
    for name, gradient in gradients.items():
        value = values.get(name)
        start = value if value is not None and value.shape == gradient.shape else np.zeros_like(gradient)
        moved[name] = (start - np.float32(rate) * gradient).astype(np.float32)
    return moved
