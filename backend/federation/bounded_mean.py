"""Sum the updates of a round and bound the length of their mean.

The sum is kept running, so only one update is in memory at a time, however large the cohort is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from protocol.ring import WeightedSum

PREFIX = "g."
"""Prefix of the tensors of a gradient update: the gradient of parameter p is named `g.<p>`."""

Shapes = Mapping[str, tuple[int, ...]]


def gradient_shapes(weights: Mapping[str, NDArray[np.float32]]) -> dict[str, tuple[int, ...]]:
    """Return the tensor shapes of an update with one gradient for each of these parameters."""
    return {PREFIX + name: value.shape for name, value in weights.items()}


class Aggregate:
    """The float64 sum of a round's updates, by tensor name.

    count: the number of devices in the sum, or the total weight (sum of n_u) if the devices are weighted.
    radius: radius of the L2 ball that contains every honest update and therefore their mean; None if it is unknown.
    noise_growth: upper bound on the variance of the noise in `sums`, relative to a plain sum over as many devices.
    room: variance of the noise on one number of `sums` for which `within_reach` lets a mean exceed the radius; 0 if a
    single malicious client could exploit that allowance.
    """

    noise_growth: float = 1.0
    room: float = 0.0

    def __init__(self, shapes: Shapes, radius: float | None = None) -> None:
        self._sums = {name: np.zeros(shape, dtype=np.float64) for name, shape in shapes.items()}
        self.count, self.radius = 0, radius

    @classmethod
    def of_opened(cls, opened: WeightedSum, radius: float | None = None) -> Aggregate:
        """Return the aggregate of an opened secure sum.

        Its count is N, the total weight of all devices. It takes ownership of the opened tensors and does not copy
        them.
        """
        total = cls({}, radius)
        total._sums, total.count = dict(opened.tensors), opened.samples
        return total

    def add(self, update: Mapping[str, NDArray[np.float32]], weight: int = 1) -> None:
        """Add one update, which must already have been validated, with its weight n_u."""
        for name, total in self._sums.items():
            total += update[name] if weight == 1 else weight * update[name].astype(np.float64)
        self.count += weight

    def add_sum(self, sums: Mapping[str, NDArray[np.float64]], count: int) -> None:
        """Add the sum of `count` updates without weights."""
        for name, total in self._sums.items():
            total += sums[name]
        self.count += count

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """Return read-only views of the sums, weighted by n_u if the devices are weighted."""
        return {name: _read_only(total) for name, total in self._sums.items()}

    def mean(self) -> dict[str, NDArray[np.float64]]:
        """Return the sum divided by the count, limited by `within_reach`.

        Raises ValueError if it is empty.
        """
        if self.count == 0:
            raise ValueError("count: the mean of zero updates is not defined")
        return self.within_reach({name: total / self.count for name, total in self._sums.items()})

    def within_reach(
        self, mean: Mapping[str, NDArray[np.float64]], divisor: float | None = None, blocks: int = 1
    ) -> dict[str, NDArray[np.float64]]:
        """Return a mean scaled down to the largest plausible length.

        That is the length that honest updates and the allowed noise can give it.

        divisor: what the sums were divided by; None: the count. blocks: how many numbers of `sums` were added up for
        each number of the mean. The mean is returned unchanged if no radius is known.
        """
        if self.radius is None:
            return dict(mean)
        coordinates = sum(each.size for each in mean.values())
        variance = blocks * self.room / (self.count if divisor is None else divisor) ** 2
        return within_ball(mean, reach(self.radius, variance, coordinates))


def reach(radius: float, variance: float, coordinates: int) -> float:
    """Return sqrt(radius^2 + d variance), a bound on the RMS length of a noisy vector.

    The vector has d numbers: a point in the ball of that radius plus noise of that variance on each number
    (docs/decisions/009).
    """
    return math.sqrt(radius**2 + coordinates * variance)


def length(tensors: Mapping[str, NDArray[np.float64]]) -> float:
    """Return the L2 norm of all tensors together."""
    return math.sqrt(sum(float(np.vdot(each, each)) for each in tensors.values()))


def within_ball(tensors: Mapping[str, NDArray[np.float64]], radius: float) -> dict[str, NDArray[np.float64]]:
    """Return the tensors, scaled down to the radius of the L2 ball if they are outside it."""
    norm = length(tensors)
    if norm <= radius:
        return dict(tensors)
    return {name: each * (radius / norm) for name, each in tensors.items()}


def _read_only(total: NDArray[np.float64]) -> NDArray[np.float64]:
    seen = total.view()
    seen.flags.writeable = False
    return seen
