"""Padding of click histories: put before short ones, and cut off again where a whole batch has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.wire.recall import CLICKS_AXIS, CLICKS_LIMIT


def left_padded(clicks: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """[H, D] oldest first -> ([1, 50, D], mask [1, 50]); only the newest 50 are kept."""
    newest = clicks[-CLICKS_LIMIT:]
    padded = np.zeros((1, CLICKS_LIMIT, clicks.shape[1]), dtype=np.float32)
    mask = np.zeros((1, CLICKS_LIMIT), dtype=np.float32)
    if len(newest):
        padded[0, -len(newest) :] = newest
        mask[0, -len(newest) :] = 1.0
    return padded, mask


MASKS = ("click_mask", "membership")
"""Inputs that are 0 at padding, whatever the model; each ends with the axis of clicks."""

Arrays = Mapping[str, NDArray[Any]]


class Declared(Protocol):
    """An input or output as ONNX Runtime declares it; a free axis is its name."""

    name: str
    shape: Sequence[Any]


@dataclass(frozen=True)
class SharedPadding:
    """Where the free axis of clicks is, by the name of input and output.

    No result depends on padding, so one for the longest history of the batch is the same and costs less.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]

    @staticmethod
    def of(inputs: Sequence[Declared], outputs: Sequence[Declared]) -> SharedPadding:
        """As a graph declares them."""
        return SharedPadding(_axes(inputs), _axes(outputs))

    def count(self, given: Arrays) -> int:
        """How many columns of clicks, from the oldest on, are padding for everybody; one column is always left."""
        mask = next((given[name] for name in MASKS if name in self.inputs and name in given), None)
        if mask is None:
            return 0
        real = np.atleast_1d(mask.any(axis=tuple(range(mask.ndim - 1))))
        return int(real.argmax()) if real.any() else max(len(real) - 1, 0)

    def cut(self, given: Arrays, count: int) -> dict[str, NDArray[Any]]:
        """Inputs without their first `count` columns."""
        if not count:
            return dict(given)
        return {
            name: each[(slice(None),) * self.inputs[name] + (slice(count, None),)] if name in self.inputs else each
            for name, each in given.items()
        }

    def put_back(self, made: Arrays, count: int) -> dict[str, NDArray[Any]]:
        """Outputs with zeros for these columns."""
        if not count:
            return dict(made)
        return {name: self._widened(name, each, count) for name, each in made.items()}

    def _widened(self, name: str, value: NDArray[Any], count: int) -> NDArray[Any]:
        if name not in self.outputs:
            return value
        before = [(count if axis == self.outputs[name] else 0, 0) for axis in range(value.ndim)]
        return np.pad(value, before)


def _axes(declared: Sequence[Declared]) -> dict[str, int]:
    return {each.name: list(each.shape).index(CLICKS_AXIS) for each in declared if CLICKS_AXIS in each.shape}
