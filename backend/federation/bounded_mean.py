"""The mean of a round's updates and its bound: a running sum, one update in memory at a time, whatever the cohort."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from device_app.wire.layout import WeightedSum

PREFIX = "g."
"""Of gradients in an update: `g.<parameter>`."""

Shapes = Mapping[str, tuple[int, ...]]


def gradient_shapes(weights: Mapping[str, NDArray[np.float32]]) -> dict[str, tuple[int, ...]]:
    """Of an update that is a gradient for each of these parameters."""
    return {PREFIX + name: value.shape for name, value in weights.items()}


class Aggregate:
    """The float64 sum of updates, by the names their tensors have there.

    count: the devices in it, or what their weights sum up to (n_u) where a secure sum weighs them. radius: of the L2
    ball that every honest update lies in, and so their mean; None where nothing is known of it. noise_growth: variance
    of the noise in `sums` beside that of so many devices' plain sum, at most. room: variance of the noise on one number
    of `sums` that `within_reach` allows a mean beyond the radius; 0 where a single liar could use it up.
    """

    noise_growth: float = 1.0
    room: float = 0.0

    def __init__(self, shapes: Shapes, radius: float | None = None) -> None:
        self._sums = {name: np.zeros(shape, dtype=np.float64) for name, shape in shapes.items()}
        self.count, self.radius = 0, radius

    @classmethod
    def of_opened(cls, opened: WeightedSum, radius: float | None = None) -> Aggregate:
        """What a secure sum opened to, whose numbers it takes over: its count is N, the weights of all devices."""
        total = cls({}, radius)
        total._sums, total.count = dict(opened.tensors), opened.samples
        return total

    def add(self, update: Mapping[str, NDArray[np.float32]]) -> None:
        """Add one update, checked already."""
        for name, total in self._sums.items():
            total += update[name]
        self.count += 1

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """The sums themselves, weighed by n_u where devices are weighed; to be read, not changed."""
        return {name: _read_only(total) for name, total in self._sums.items()}

    def mean(self) -> dict[str, NDArray[np.float64]]:
        """The sum over the count, brought back within reach. Raises ValueError if nothing was added."""
        if self.count == 0:
            raise ValueError("count: the mean of no updates is not defined")
        return self.within_reach({name: total / self.count for name, total in self._sums.items()})

    def within_reach(
        self, mean: Mapping[str, NDArray[np.float64]], divisor: float | None = None, blocks: int = 1
    ) -> dict[str, NDArray[np.float64]]:
        """A mean brought back to the length that honest updates and the noise that is allowed for give it.

        divisor: what sums were divided by for it, the count where it is None; blocks: how many numbers of `sums` were
        added up for each of its own. As it is where no radius is known.
        """
        if self.radius is None:
            return dict(mean)
        coordinates = sum(each.size for each in mean.values())
        variance = blocks * self.room / (self.count if divisor is None else divisor) ** 2
        return within_ball(mean, reach(self.radius, variance, coordinates))


def reach(radius: float, variance: float, coordinates: int) -> float:
    """sqrt(radius^2 + d variance): the root of the mean squared length, at most, of a vector of d numbers within the
    ball of that radius and noise of that variance on each (docs/decisions/049)."""
    return math.sqrt(radius**2 + coordinates * variance)


def length(tensors: Mapping[str, NDArray[np.float64]]) -> float:
    """The L2 norm of all of them together."""
    return math.sqrt(sum(float(np.vdot(each, each)) for each in tensors.values()))


def within_ball(tensors: Mapping[str, NDArray[np.float64]], radius: float) -> dict[str, NDArray[np.float64]]:
    """The nearest point of the L2 ball: the tensors as they are, or scaled down to its radius."""
    norm = length(tensors)
    if norm <= radius:
        return dict(tensors)
    return {name: each * (radius / norm) for name, each in tensors.items()}


def _read_only(total: NDArray[np.float64]) -> NDArray[np.float64]:
    seen = total.view()
    seen.flags.writeable = False
    return seen
