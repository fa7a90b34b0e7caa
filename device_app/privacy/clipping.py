"""Clips an update before noise is added; the bound is stored with the values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from device_app.privacy.private_parameters import SharedUpdate


@dataclass(frozen=True)
class Clipped:
    """An update whose every coordinate lies in [-bound, bound]; checked when it's made.

    Formal guarantees: two instances with the same bound differ by at most 2 bound in a coordinate and 2 bound P in L1;
    and those of `SharedUpdate`: it contains no private parameter.
    """

    update: SharedUpdate
    bound: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.bound) and self.bound > 0):
            raise ValueError(f"bound must be positive and finite; got {self.bound}")
        if not self.tensors:
            raise ValueError("an update needs at least one tensor")
        for name, tensor in self.tensors.items():
            if tensor.dtype != np.float32:
                raise ValueError(f"tensor {name}: dtype {tensor.dtype}, expected float32")
            if tensor.size and not (np.abs(tensor).max() <= self.bound):
                raise ValueError(f"tensor {name}: has values beyond {self.bound} or not finite")

    @property
    def tensors(self) -> Mapping[str, NDArray[np.float32]]:
        """float32, by name (`g.<parameter>`)."""
        return self.update.tensors

    @property
    def coordinates(self) -> int:
        """P: how many numbers the update has."""
        return sum(tensor.size for tensor in self.tensors.values())

    @property
    def sensitivity_per_coordinate(self) -> float:
        """2 theta: the largest change of one coordinate when all of a device's data are replaced."""
        return 2 * self.bound


def clip_elementwise(update: SharedUpdate, theta: float) -> Clipped:
    """Bound every coordinate to [-theta, theta] (Uni-FedRec, eq. 8).

    Raises ValueError for NaN or infinity.

    Formal guarantees: those of `Clipped`. theta is rounded down to a float32, since float32(0.1) is more than 0.1.
    """
    if not (np.isfinite(theta) and theta > 0):
        raise ValueError(f"theta must be positive and finite; got {theta}")
    edge = np.float32(theta)
    if float(edge) > theta:
        edge = np.nextafter(edge, np.float32(0))
    for name, tensor in update.tensors.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"tensor {name}: has values that are not finite: nothing is released")
    bounded = {
        name: np.asarray(np.clip(tensor.astype(np.float32), -edge, edge)) for name, tensor in update.tensors.items()
    }
    return Clipped(replace(update, tensors=bounded), theta)
