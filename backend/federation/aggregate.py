"""A running sum of updates: one update in memory at a time, whatever the cohort."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from device_app.wire.layout import WeightedMean
from device_app.wire.tensors import TensorSpec

PREFIX = "g."


def update_specs(weights: Mapping[str, NDArray[np.float32]]) -> dict[str, TensorSpec]:
    """What an update must hold: `g.<parameter>` float32 of the parameter's shape, for each parameter."""
    return {PREFIX + name: TensorSpec("float32", value.shape) for name, value in weights.items()}


class Aggregate:
    """The float64 sum of updates, by parameter name, and how many went in."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._sums = {name: np.zeros(shape, dtype=np.float64) for name, shape in shapes.items()}
        self.count = 0

    @classmethod
    def of_opened(cls, opened: WeightedMean) -> Aggregate:
        """What a secure sum opened to: its count is N, the samples of all devices."""
        total = cls({name.removeprefix(PREFIX): mean.shape for name, mean in opened.tensors.items()})
        for name, mean in opened.tensors.items():
            total._sums[name.removeprefix(PREFIX)] += mean * opened.samples
        total.count = opened.samples
        return total

    def add(self, update: Mapping[str, NDArray[np.float32]]) -> None:
        """Add one update, checked already; its tensors are named `g.<parameter>`."""
        for name, total in self._sums.items():
            total += update[PREFIX + name]
        self.count += 1

    def mean(self) -> dict[str, NDArray[np.float64]]:
        """The sum over the count. Raises ValueError if nothing was added."""
        if self.count == 0:
            raise ValueError("count: the mean of no updates is not defined")
        return {name: total / self.count for name, total in self._sums.items()}
