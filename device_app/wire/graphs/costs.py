"""What a run of a graph costs at most, by the sizes of its free axes, and what it may cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from device_app.wire.graphs.message import GraphRefused
from device_app.wire.graphs.sizes import Size, bounds
from device_app.wire.recall import CLICKS_AXIS, CLICKS_LIMIT

RUN_LIMIT_BYTES = 1024**3
"""All tensors of one run together, freed ones too."""
RUN_LIMIT_MULTIPLY_ADDS = 2 * 10**10
"""Of one run, other work in its measure (`operators`)."""
AXES_OF_A_RUN = {"batch": 8, "news": 1_000, CLICKS_AXIS: CLICKS_LIMIT}
"""The free axes, and how large each is at most in what a device runs daily: batches of training, a recall's candidates.
A graph must keep the limits here; of a larger run that is asked before it begins."""
GREATEST_AXIS = 2**20
KNOWN_RUNS_KEPT = 1_024

FreeAxis = tuple[str, int, str]
"""Name of an input, which of its axes, name of the axis."""


@dataclass(frozen=True)
class GraphCosts:
    """What a run of a checked graph needs at most.

    axes: the free axes of its inputs; one name must have one size. memory_bytes, multiply_adds: of a run, in the sizes
    of the free axes and of `made`, axes that the graph makes itself, each with its greatest size.
    """

    axes: tuple[FreeAxis, ...]
    memory_bytes: Size
    multiply_adds: Size
    made: Mapping[str, Size]
    _allowed: set[tuple[int, ...]] = field(default_factory=set, repr=False, compare=False)

    def of(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Bytes and multiply-adds of a run with axes of these sizes."""
        axes = {name: (size, size) for name, size in sizes.items()}
        for name, most in self.made.items():
            axes[name] = (1, max(1, bounds(most, axes)[1]))
        return bounds(self.memory_bytes, axes)[1], bounds(self.multiply_adds, axes)[1]

    def require(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Raise GraphRefused unless a run on inputs of these shapes is consistent and within the limits."""
        sizes: dict[str, int] = {}
        for name, place, axis in self.axes:
            shape = shapes[name]
            if place >= len(shape):
                raise GraphRefused(f"input {name} has {len(shape)} axes")
            if sizes.setdefault(axis, shape[place]) != shape[place]:
                raise GraphRefused(f"input {name}: axis {axis} has size {shape[place]}, elsewhere {sizes[axis]}")
        key = tuple(sizes.values())
        if key not in self._allowed:
            _require_sizes(sizes)
            require_limits(*self.of(sizes), sizes)
            if len(self._allowed) >= KNOWN_RUNS_KEPT:
                self._allowed.clear()
            self._allowed.add(key)


def _require_sizes(sizes: Mapping[str, int]) -> None:
    for axis, size in sizes.items():
        if not 1 <= size <= GREATEST_AXIS:
            raise GraphRefused(f"axis {axis} has size {size}, allowed are 1 to {GREATEST_AXIS}")


def require_limits(memory_bytes: int, multiply_adds: int, sizes: Mapping[str, int]) -> None:
    where = ", ".join(f"{axis} {size}" for axis, size in sizes.items()) or "no free axes"
    if memory_bytes > RUN_LIMIT_BYTES:
        raise GraphRefused(f"a run with {where} needs {memory_bytes} bytes, the limit is {RUN_LIMIT_BYTES}")
    if multiply_adds > RUN_LIMIT_MULTIPLY_ADDS:
        raise GraphRefused(
            f"a run with {where} needs {multiply_adds} multiply-adds, the limit is {RUN_LIMIT_MULTIPLY_ADDS}"
        )
