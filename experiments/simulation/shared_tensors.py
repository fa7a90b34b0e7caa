"""The weights of a round and the sums of its blocks, in memory that the processes of a simulation share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Shapes

Scalar = TypeVar("Scalar", np.float32, np.float64)


@dataclass(frozen=True)
class Layout:
    """Where each tensor lies: `slots` sums in float64, then the weights in float32.

    name: the shared memory's name; weights and sums: shapes by tensor name.
    """

    name: str
    weights: Shapes
    sums: Shapes
    slots: int


class SharedTensors:
    """The tensors of a layout. The process that creates it removes it with `unlink`; the others attach to it."""

    def __init__(self, memory: SharedMemory, layout: Layout) -> None:
        self.layout, self._memory = layout, memory
        each = 8 * _count(layout.sums)
        self._sums = [_views(memory, layout.sums, np.float64, slot * each) for slot in range(layout.slots)]
        self._weights = _views(memory, layout.weights, np.float32, layout.slots * each)

    @classmethod
    def create(cls, weights: Shapes, sums: Shapes, *, slots: int) -> SharedTensors:
        """Reserve the memory. Raises OSError if there isn't enough."""
        memory = SharedMemory(create=True, size=max(1, 8 * slots * _count(sums) + 4 * _count(weights)))
        return cls(memory, Layout(memory.name, dict(weights), dict(sums), slots))

    @classmethod
    def attach(cls, layout: Layout) -> SharedTensors:
        """Open what another process created. Raises FileNotFoundError if it is gone."""
        return cls(SharedMemory(layout.name), layout)

    @property
    def slots(self) -> int:
        return self.layout.slots

    def sums(self, slot: int) -> dict[str, NDArray[np.float64]]:
        """Return the sum in a slot: views, which anyone may write."""
        return dict(self._sums[slot])

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return the weights: views."""
        return dict(self._weights)

    def set_weights(self, values: Mapping[str, NDArray[np.float32]]) -> None:
        """Copy the weights in; no process may be reading them."""
        for name, view in self._weights.items():
            view[...] = values[name]

    def unlink(self) -> None:
        """Remove the memory; it is freed when the last process closes it."""
        self._sums, self._weights = [], {}
        self._memory.unlink()


def _count(shapes: Shapes) -> int:
    return sum(math.prod(shape) for shape in shapes.values())


def _views(memory: SharedMemory, shapes: Shapes, kind: type[Scalar], offset: int) -> dict[str, NDArray[Scalar]]:
    found = {}
    for name, shape in shapes.items():
        found[name] = np.ndarray(shape, kind, memory.buf, offset)
        offset += found[name].nbytes
    return found
