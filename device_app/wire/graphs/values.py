"""What is known of a tensor before the graph runs, and what a node's rule may ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from device_app.wire.graphs.message import GraphRefused
from device_app.wire.graphs.sizes import NUMBER_LIMIT, Polynomial, Size, bounds, product

FLOAT, INT32, INT64, BOOL, DOUBLE = 1, 6, 7, 9, 11
WIDTHS_BYTES = {FLOAT: 4, INT32: 4, INT64: 8, BOOL: 1, DOUBLE: 8}
RANK_LIMIT = 8
CONTENT_LIMIT = 1_024
"""Longer lists are no shapes: what stands in them isn't followed."""
SHOWN = {FLOAT: "float32", INT32: "int32", INT64: "int64", BOOL: "bool", DOUBLE: "float64"}

Shape = tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class KnownTensor:
    """A tensor.

    content: its whole numbers, if it has one axis or none and they follow from constants and shapes alone. of_mask: it
    follows from these and the mask of clicks alone. some: not all of it is zero, whatever is fed.
    """

    element: int
    shape: Shape
    content: tuple[Size, ...] | None = None
    of_mask: bool = False
    some: bool = False

    @property
    def count(self) -> Size:
        """How many numbers it holds."""
        return product(self.shape)


@dataclass
class Node:
    """One node as its rule sees it: what it is given, and what was found out about all before it."""

    operator: str
    inputs: Sequence[KnownTensor | None]
    outputs: int
    attributes: Mapping[str, Any]
    axes: dict[str, tuple[int, int]]
    free: dict[str, Size] = field(default_factory=dict)
    """Axes that the graph itself makes, and the greatest size of each."""
    multiply_adds: Size = 0
    scratch_bytes: Size = 0

    def refuse(self, why: str) -> NoReturn:
        """Raise GraphRefused."""
        raise GraphRefused(why)

    def given(self, place: int) -> KnownTensor:
        """An input that must be there."""
        value = self.inputs[place] if place < len(self.inputs) else None
        if value is None:
            self.refuse(f"its input {place} is missing")
        return value

    def maybe(self, place: int) -> KnownTensor | None:
        """An input that may be left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def of_mask(self) -> bool:
        """Whether nothing but constants, shapes and the mask of clicks is behind its inputs."""
        return all(each is None or each.of_mask for each in self.inputs)

    def sizes(self, place: int) -> tuple[Size, ...]:
        """An input that says sizes, starts or axes: constant, or made from shapes."""
        value = self.given(place)
        if value.content is None or value.element != INT64:
            self.refuse(f"its input {place}, which says a shape or a place, depends on what is fed")
        if len(value.shape) != 1 and self.operator != "CumSum":
            self.refuse(f"its input {place} is no list")
        return value.content

    def numbers(self, place: int) -> tuple[int, ...]:
        """As `sizes`, and constant."""
        found = self.sizes(place)
        if any(isinstance(each, Polynomial) for each in found):
            self.refuse(f"its input {place} must be constant")
        return tuple(each for each in found if isinstance(each, int))

    def bounds(self, size: Size) -> tuple[int, int]:
        """Between what and what a size lies, whatever is fed."""
        return bounds(size, self.axes)

    def axis(self, number: int, rank: int) -> int:
        """An axis counted from the first."""
        if not -rank <= number < rank:
            self.refuse(f"it names axis {number} of {rank}")
        return number % rank

    def same(self, one: Shape, other: Shape, what: str) -> None:
        """Refuse shapes that differ."""
        if one != other:
            self.refuse(f"{what} have shapes {list(one)} and {list(other)}")


def joined(node: Node, *shapes: Shape) -> Shape:
    """The shape that broadcasting gives."""
    rank = max(map(len, shapes), default=0)
    result: list[Size] = [1] * rank
    for shape in shapes:
        for place, size in enumerate(shape, start=rank - len(shape)):
            if size == 1 or size == result[place]:
                continue
            if result[place] != 1:
                node.refuse(f"its inputs have shapes {[list(each) for each in shapes]}, which don't go together")
            result[place] = size
    return tuple(result)


def within(node: Node, size: Size, low: int) -> Size:
    """The size, which is at least `low` whatever is fed, and no larger than 2^62."""
    least, most = node.bounds(size)
    if least < low or most > NUMBER_LIMIT:
        node.refuse(f"a size lies between {least} and {most}, allowed are {low} to {NUMBER_LIMIT}")
    return size
