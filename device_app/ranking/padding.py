"""Pads short click histories on the left, and removes padding that a whole batch shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from protocol.recall import CLICKS_AXIS, CLICKS_LIMIT


def left_padded(clicks: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return ([1, 50, D], mask [1, 50]) from [H, D], oldest first; keeps only the newest 50."""
    newest = clicks[-CLICKS_LIMIT:]
    padded = np.zeros((1, CLICKS_LIMIT, clicks.shape[1]), dtype=np.float32)
    mask = np.zeros((1, CLICKS_LIMIT), dtype=np.float32)
    if len(newest):
        padded[0, -len(newest) :] = newest
        mask[0, -len(newest) :] = 1.0
    return padded, mask


MASKS = ("click_mask", "membership")
"""Inputs that are 0 at padding in every model; their last axis is that of clicks."""

Arrays = Mapping[str, NDArray[Any]]


class Declared(Protocol):
    """An input or output as ONNX Runtime declares it; a free axis is represented by its name."""

    name: str
    shape: Sequence[Any]


@dataclass(frozen=True)
class SharedPadding:
    """The position of the free axis of clicks, by name of input and output.

    No result depends on padding, so padding only to the longest history of the batch gives the same result and costs
    less.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]

    @staticmethod
    def of(inputs: Sequence[Declared], outputs: Sequence[Declared]) -> SharedPadding:
        """Return the positions that a graph declares."""
        return SharedPadding(_axes(inputs), _axes(outputs))

    def count(self, inputs: Arrays) -> int:
        """Return how many leading columns are padding in every row.

        At least one column always stays.
        """
        mask = next((inputs[name] for name in MASKS if name in self.inputs and name in inputs), None)
        if mask is None:
            return 0
        real = np.atleast_1d(mask.any(axis=tuple(range(mask.ndim - 1))))
        return int(real.argmax()) if real.any() else max(len(real) - 1, 0)

    def cut(self, inputs: Arrays, count: int) -> dict[str, NDArray[Any]]:
        """Return the inputs without their first `count` columns."""
        if not count:
            return dict(inputs)
        return {
            name: each[(slice(None),) * self.inputs[name] + (slice(count, None),)] if name in self.inputs else each
            for name, each in inputs.items()
        }

    def put_back(self, outputs: Arrays, count: int) -> dict[str, NDArray[Any]]:
        """Return the outputs with zeros in the removed columns."""
        if not count:
            return dict(outputs)
        return {name: self._widened(name, each, count) for name, each in outputs.items()}

    def _widened(self, name: str, value: NDArray[Any], count: int) -> NDArray[Any]:
        if name not in self.outputs:
            return value
        before = [(count if axis == self.outputs[name] else 0, 0) for axis in range(value.ndim)]
        return np.pad(value, before)


def _axes(declared: Sequence[Declared]) -> dict[str, int]:
    return {each.name: list(each.shape).index(CLICKS_AXIS) for each in declared if CLICKS_AXIS in each.shape}
