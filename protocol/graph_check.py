"""Check a release's graphs (docs/decisions/031).

It accepts only graphs whose control flow does not depend on data. ONNX Runtime runs a release's graphs in the device's
process, on the reader's clicks, so whoever signs releases could write a graph that loops, crashes or takes all memory
if the reader has clicked certain articles. The device therefore parses each graph first: strictly, so that no other
parser can understand it differently. It allows only listed operators, no integer division, and only sizes that follow
from constants, shapes, or the number of real clicks in a mask. The cost of a run then follows from the sizes of its
inputs.
"""

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from protocol.recall import CLICKS_AXIS, CLICKS_LIMIT

_TABLE = tomllib.loads(resources.files("protocol").joinpath("graphs.toml").read_text("utf-8"))
LIMITS: Mapping[str, int] = _TABLE["limits"]
OPSET, FILE_LIMIT_BYTES, RANK_LIMIT, GREATEST_AXIS = (LIMITS[each] for each in ("opset", "file_bytes", "rank", "axis"))
RUN_LIMIT_BYTES, RUN_LIMIT_MULTIPLY_ADDS = LIMITS["run_bytes"], LIMITS["run_multiply_adds"]
SIZE_LIMIT, FAR = 2**53, 2**31 - 1
"""Sizes are exact in both runtimes up to the first; FAR is the end of any axis."""
CHEAP = 8
"""The cost of moving or adding a number, in multiply-adds of a matrix product."""
AXES_OF_A_RUN: Mapping[str, int] = _TABLE["axes"] | {CLICKS_AXIS: CLICKS_LIMIT}
FLOATS_OF_A_RANGE = (np.float32(0).tobytes(), np.float32(1).tobytes())
REAL = "real"
"""Prefix of axes that count real clicks; only an upper bound of their size is known."""
FLOAT, INT32, INT64, BOOL, DOUBLE = 1, 6, 7, 9, 11
WIDTHS_BYTES = {FLOAT: 4, INT32: 4, INT64: 8, BOOL: 1, DOUBLE: 8}


class GraphRefused(ValueError):
    """A graph was refused.

    The message is a sentence fragment that names the place and the limit.
    """


# The file format: protobuf's, with the fields of onnx.proto that a graph of ours has. A list marks a repeated field.
Fields = Mapping[int, tuple[str, Any]]
AXIS: Fields = {1: ("size", "integer"), 2: ("name", "name")}
TENSOR_TYPE: Fields = {1: ("element", "integer"), 2: ("shape", {1: ("axes", [AXIS])})}
DECLARED: Fields = {1: ("name", "name"), 2: ("type", {1: ("tensor", TENSOR_TYPE)})}
TENSOR: Fields = {1: ("dims", ["integer"]), 2: ("element", "integer"), 8: ("name", "name"), 9: ("raw", "bytes")}
ATTRIBUTE: Fields = {1: ("name", "name"), 2: ("f", "float"), 3: ("i", "integer"), 4: ("s", "name"),
                     8: ("ints", ["integer"]), 20: ("type", "integer")}  # fmt: skip
NODE: Fields = {1: ("inputs", ["name"]), 2: ("outputs", ["name"]), 3: ("name", "name"), 4: ("operator", "name"),
                5: ("attributes", [ATTRIBUTE]), 7: ("domain", "name")}  # fmt: skip
GRAPH: Fields = {1: ("nodes", [NODE]), 2: ("name", "name"), 5: ("initializers", [TENSOR]), 11: ("inputs", [DECLARED]),
                 12: ("outputs", [DECLARED])}  # fmt: skip
OPERATOR_SET: Fields = {1: ("domain", "name"), 2: ("version", "integer")}
MODEL: Fields = {1: ("ir_version", "integer"), 7: ("graph", GRAPH), 8: ("operator_sets", [OPERATOR_SET])}
WIRE_TYPES = {"integer": 0, "float": 5}

Parsed = dict[str, Any]
"""Field name -> value: absent fields are absent, repeated ones always there."""


class _WireReader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = self._numbers = 0

    def message(self, end: int, fields: Fields, where: str) -> Parsed:
        found: Parsed = {name: [] for name, kind in fields.values() if isinstance(kind, list)}
        while self._at < end:
            key = self._varint(end, where)
            number, wire = key >> 3, key & 7
            if number not in fields:
                raise GraphRefused(f"{where} has field {number}, which a release's graph may not contain")
            name, kind = fields[number]
            path = f"{where}.{name}"
            if not isinstance(kind, list):
                if name in found:
                    raise GraphRefused(f"{path} appears twice")
                found[name] = self._value(end, wire, kind, path)
            elif kind[0] == "integer" and wire == 2:  # packed
                last = self._span(end, path)
                while self._at < last:
                    found[name].append(_signed(self._varint(last, path)))
            else:
                found[name].append(self._value(end, wire, kind[0], path))
        return found

    def _value(self, end: int, wire: int, kind: str | Fields, path: str) -> Any:
        wanted = WIRE_TYPES.get(kind, 2) if isinstance(kind, str) else 2
        if wire != wanted:
            raise GraphRefused(f"{path} is written as wire type {wire}, not {wanted}")
        if kind == "integer":
            return _signed(self._varint(end, path))
        last = self._at + 4 if kind == "float" else self._span(end, path)
        if last > end:
            raise GraphRefused(f"{path} is cut off")
        if not isinstance(kind, str):
            return self.message(last, kind, path)
        part, self._at = self._content[self._at : last], last
        if kind != "name":
            return part
        if len(part) > LIMITS["name_chars"] or not all(
            0x20 < byte < 0x7F for byte in part
        ):  # names reach logs and pages
            raise GraphRefused(f"{path} is not a name of at most {LIMITS['name_chars']} printable ASCII characters")
        return part.decode("ascii")

    def _span(self, end: int, path: str) -> int:
        length = self._varint(end, path)
        if length > end - self._at:
            raise GraphRefused(f"{path} is longer than the message around it")
        return self._at + length

    def _varint(self, end: int, path: str) -> int:
        self._numbers += 1
        if self._numbers > LIMITS["numbers"]:
            raise GraphRefused(f"it has more than {LIMITS['numbers']} numbers")
        value = 0
        for place in range(10):
            if self._at >= end:
                raise GraphRefused(f"{path} is cut off")
            byte = self._content[self._at]
            self._at += 1
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if (place and not byte) or value >= 1 << 64:
                    break
                return value
        raise GraphRefused(f"{path} has a number that is not written in the shortest way")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


Size = tuple[int, tuple[str, ...]]
"""An integer times free axes."""
Shape = tuple[Size, ...]
Terms = Mapping[tuple[str, ...], int]
ONE: Size = (1, ())


def times(sizes: Sequence[Size]) -> Size:
    """Return the number of elements in a tensor of this shape."""
    number, axes = math.prod(size[0] for size in sizes), tuple(sorted(chain.from_iterable(size[1] for size in sizes)))
    if number > SIZE_LIMIT or len(axes) > LIMITS["degree"]:
        raise GraphRefused(f"a size is beyond 2^53, or has more than {LIMITS['degree']} factors")
    return number, axes


def quotient(total: Size, part: Size) -> Size | None:
    """total / part if that is an integer for all sizes of the axes."""
    left = Counter(total[1])
    left.subtract(part[1])
    if part[0] < 1 or total[0] % part[0] or min(left.values(), default=0) < 0:
        return None
    return total[0] // part[0], tuple(sorted(left.elements()))


def bound(size: Size, axes: Mapping[str, int]) -> int:
    """Return the value of a symbolic size when the axes have these sizes."""
    return size[0] * math.prod(axes[axis] for axis in size[1])


@dataclass(frozen=True, slots=True)
class KnownTensor:
    """What is known of a tensor before the graph runs.

    content: its integers, if it has at most one axis and they are constants or sizes. of_mask: it depends only on
    constants, shapes and a mask. some: it has a nonzero element for all inputs.
    """

    element: int
    shape: Shape
    content: Shape | None = None
    of_mask: bool = False
    some: bool = False


@dataclass
class Node:
    """One node of the graph, as passed to its operator's rule.

    made: axes that the graph creates itself, each a sum of terms (axes -> number).
    """

    inputs: Sequence[KnownTensor | None]
    outputs: int
    attributes: Mapping[str, Any]
    made: dict[str, Terms]
    multiply_adds: Size = (0, ())
    scratch_bytes: Size = (0, ())

    def refuse(self, why: str) -> NoReturn:
        """Raise GraphRefused."""
        raise GraphRefused(why)

    def given(self, place: int) -> KnownTensor:
        """Return a required input."""
        value = self.inputs[place] if place < len(self.inputs) else None
        return self.refuse(f"its input {place} is missing") if value is None else value

    def sizes(self, place: int) -> Shape:
        """Return an input that holds sizes, starts or axes.

        It must be constant, or computed from shapes.
        """
        value = self.given(place)
        if value.content is None or value.element != INT64:
            self.refuse(f"its input {place}, which says a shape or a place, depends on what is fed")
        return value.content

    def numbers(self, place: int) -> list[int]:
        """Like `sizes`, but constant."""
        if any(axes for _, axes in self.sizes(place)):
            self.refuse(f"its input {place} must be constant")
        return [number for number, _ in self.sizes(place)]

    def axis(self, otherwise: int = 0) -> int:
        """Return the attribute `axis` as a nonnegative index into the first input's axes."""
        return self.place(self.attributes.get("axis", otherwise))

    def place(self, axis: int) -> int:
        """Return an axis of the first input as a nonnegative index."""
        rank = len(self.given(0).shape)
        return axis % rank if -rank <= axis < rank else self.refuse(f"it names an axis that is not among {rank}")

    def sum_of(self, sizes: Shape, more: int = 0) -> Size:
        """Return the sum of the sizes and a constant: one term, or a new axis named by its terms."""
        total: Counter[tuple[str, ...]] = Counter({(): more})
        for number, axes in sizes:
            exact = number == len(axes) == 1 and not axes[0].startswith(REAL)
            total.update(self.made.get(axes[0], {axes: number}) if exact else {axes: number})
        terms = {axes: total[axes] for axes in sorted(total) if total[axes]}
        if any(abs(number) > SIZE_LIMIT for number in terms.values()):
            self.refuse("a size is beyond 2^53")
        if len(terms) < 2:
            return next(((number, axes) for axes, number in terms.items()), (0, ()))
        name = "+".join("*".join([str(number), *axes]) for axes, number in terms.items())
        self.made[name] = terms
        return 1, (name,)

    def joined(self, *shapes: Shape) -> Shape:
        """Return the broadcast shape."""
        rank = max(map(len, shapes))
        result = [ONE] * rank
        for shape in shapes:
            for place, size in enumerate(shape, start=rank - len(shape)):
                if result[place] == ONE:
                    result[place] = size
                elif size not in (ONE, result[place]):
                    self.refuse("its inputs have shapes that don't go together")
        return tuple(result)


Rule = Callable[[Node], list[KnownTensor]]
"""Computes what is known of a node's outputs."""


def _same(node: Node) -> list[KnownTensor]:
    return [KnownTensor(node.given(0).element, node.given(0).shape)]


def _elementwise(node: Node) -> list[KnownTensor]:
    return [KnownTensor(node.given(0).element, node.joined(node.given(0).shape, node.given(1).shape))]


def _comparison(node: Node) -> list[KnownTensor]:
    return [replace(_elementwise(node)[0], element=BOOL)]


def _where(node: Node) -> list[KnownTensor]:
    return [KnownTensor(node.given(1).element, node.joined(*(node.given(place).shape for place in range(3))))]


def _cast(node: Node) -> list[KnownTensor]:
    value, to = node.given(0), node.attributes.get("to")
    if to not in WIDTHS_BYTES:
        node.refuse("it makes numbers of another type")
    content = value.content if (value.element, to) == (INT64, FLOAT) else None
    return [KnownTensor(to, value.shape, content)]


def _shape(node: Node) -> list[KnownTensor]:
    sizes = node.given(0).shape[node.attributes.get("start", 0) : node.attributes.get("end")]
    return [KnownTensor(INT64, ((len(sizes), ()),), sizes)]


def _reshape(node: Node) -> list[KnownTensor]:
    """Handle Reshape: 0 keeps the input's axis, and one -1 takes what remains."""
    value, wanted = node.given(0), list(node.sizes(1))
    for place, size in enumerate(wanted):
        if size == (0, ()):
            wanted[place] = value.shape[place] if place < len(value.shape) else node.refuse("it keeps no axis")
    open_, fixed = (-1, ()), [size for size in wanted if size != (-1, ())]
    left = quotient(times(value.shape), times(fixed)) if all(size[0] > 0 for size in fixed) else None
    if left is None or len(fixed) < len(wanted) - 1 or (len(fixed) == len(wanted) and left != ONE):
        node.refuse("its shape can't be made of what is given, whatever is fed")
    shape = tuple(left if size == open_ else size for size in wanted)
    return [KnownTensor(value.element, shape, some=value.some)]


def _squeeze(node: Node) -> list[KnownTensor]:
    value = node.given(0)
    if len(node.inputs) > 1 or any(axes for _, axes in value.shape):
        node.refuse("which axes it takes away depends on what is fed")
    return [KnownTensor(value.element, tuple(size for size in value.shape if size != ONE), value.content)]


def _unsqueeze(node: Node) -> list[KnownTensor]:
    value, named = node.given(0), node.numbers(1)
    rank, sizes = len(value.shape) + len(named), list(value.shape)
    if len(set(named)) < len(named) or not all(0 <= place < rank for place in named):
        node.refuse("it names an axis twice, or one that there is not")
    for place in sorted(named):
        sizes.insert(place, ONE)
    return [KnownTensor(value.element, tuple(sizes))]


def _transpose(node: Node) -> list[KnownTensor]:
    value, order = node.given(0), node.attributes.get("perm", [])
    if sorted(order) != list(range(len(value.shape))):
        node.refuse("its perm must name each axis once")
    return [KnownTensor(value.element, tuple(value.shape[place] for place in order))]


def _concat(node: Node) -> list[KnownTensor]:
    parts = [node.given(place) for place in range(len(node.inputs))]
    axis, rank = node.axis(RANK_LIMIT), len(node.given(0).shape)
    if any(len(each.shape) != rank for each in parts):
        node.refuse("its inputs are of different ranks")
    beside = node.joined(*((*each.shape[:axis], ONE, *each.shape[axis + 1 :]) for each in parts))
    total = node.sum_of(tuple(each.shape[axis] for each in parts))
    contents = [each.content for each in parts if each.content is not None]
    content = tuple(chain.from_iterable(contents))
    known = rank == 1 and len(contents) == len(parts) and len(content) <= LIMITS["content"]
    some = any(each.some for each in parts)
    shape = (*beside[:axis], total, *beside[axis + 1 :])
    return [KnownTensor(parts[0].element, shape, content if known else None, some=some)]


def _split(node: Node) -> list[KnownTensor]:
    value, lengths, axis = node.given(0), node.numbers(1), node.axis()
    if min(lengths) < 1 or (sum(lengths), ()) != value.shape[axis]:
        node.refuse("it splits an axis into pieces that don't make it")
    before, after = value.shape[:axis], value.shape[axis + 1 :]
    return [KnownTensor(value.element, (*before, (each, ()), *after)) for each in lengths]


def _slice(node: Node) -> list[KnownTensor]:
    """Handle Slice: up to any index of a fixed axis, or to the end of a free one."""
    value, starts, ends, places = node.given(0), node.numbers(1), node.numbers(2), node.numbers(3)
    if (
        len({len(starts), len(ends), len(places), len(set(places))}) > 1
        or min([*starts, *ends, *places], default=0) < 0
    ):
        node.refuse("its starts, ends and axes are not equally many, or count from the end")
    if len(node.inputs) > 4 and node.numbers(4) != [1] * len(starts):
        node.refuse("it takes steps")
    sizes = list(value.shape)
    for place, start, end in zip(map(node.place, places), starts, ends, strict=True):
        number, axes = sizes[place]
        if not axes:
            sizes[place] = max(0, min(end, number) - start), ()
        elif end < FAR:
            node.refuse("it takes a part of an axis whose length depends on what is fed")
        else:
            sizes[place] = node.sum_of((sizes[place],), -start)
    return [KnownTensor(value.element, tuple(sizes))]


def _pad(node: Node) -> list[KnownTensor]:
    value, widths = node.given(0), node.numbers(1)
    rank = len(value.shape)
    if len(widths) != 2 * rank or min(widths, default=0) < 0:
        node.refuse("its pads must be two numbers for each axis, none below 0")
    around = [widths[place] + widths[place + rank] for place in range(rank)]
    shape = tuple(node.sum_of((size,), more) for size, more in zip(value.shape, around, strict=True))
    return [KnownTensor(value.element, shape)]


def _expand(node: Node) -> list[KnownTensor]:
    wanted = node.sizes(1)
    if any(number < 1 for number, _ in wanted):
        node.refuse("it expands to less than 1")
    return [KnownTensor(node.given(0).element, node.joined(node.given(0).shape, wanted))]


def _range(node: Node) -> list[KnownTensor]:
    """Handle Range: all whole numbers below a size."""
    bounds_ = [node.given(place).content for place in range(3)]
    if any(each is None or len(each) != 1 for each in bounds_):
        node.refuse("its bounds depend on what is fed")
    (start,), (limit,), (delta,) = (each for each in bounds_ if each is not None)
    if start != (0, ()) or delta != ONE or limit[0] < 0:
        node.refuse("it must count from 0 by 1")
    return [KnownTensor(node.given(0).element, (limit,))]


def _gather(node: Node) -> list[KnownTensor]:
    value, axis = node.given(0), node.axis()
    return [KnownTensor(value.element, (*value.shape[:axis], *node.given(1).shape, *value.shape[axis + 1 :]))]


def _gather_nd(node: Node) -> list[KnownTensor]:
    value, rows = node.given(0), node.given(1)
    depth, axes = rows.shape[-1] if rows.shape else (0, ())
    if axes or not 1 <= depth <= len(value.shape):
        node.refuse("its rows don't go with what they are of")
    return [KnownTensor(value.element, (*rows.shape[:-1], *value.shape[depth:]))]


def _gather_elements(node: Node) -> list[KnownTensor]:
    return [KnownTensor(node.given(0).element, node.given(1).shape)]


def _nonzero(node: Node) -> list[KnownTensor]:
    """Handle NonZero, which selects the real clicks.

    Its size is the only one that depends on input data, and it depends on the mask alone.
    """
    value = node.given(0)
    if len(value.shape) != 1 or not value.of_mask or not value.some:
        node.refuse("it may ask only the mask of clicks, in one row that begins with 1, how large its result is")
    name = f"{REAL}{len(node.made)}"
    node.made[name] = {value.shape[0][1]: value.shape[0][0]}
    return [KnownTensor(INT64, (ONE, (1, (name,))))]


def _matmul(node: Node) -> list[KnownTensor]:
    """Handle products of matrices.

    Further axes are broadcast, and a list counts as a row or a column.
    """
    first, second = node.given(0).shape, node.given(1).shape
    left, right = (first if len(first) > 1 else (ONE, *first)), (second if len(second) > 1 else (*second, ONE))
    if not first or not second or left[-1] != right[-2]:
        node.refuse("it multiplies matrices that don't go together")
    beside = node.joined(left[:-2], right[:-2])
    node.multiply_adds = times((*beside, left[-2], left[-1], right[-1]))
    shape = (*beside, *(left[-2:-1] if len(first) > 1 else ()), *(right[-1:] if len(second) > 1 else ()))
    return [KnownTensor(node.given(0).element, shape)]


def _gemm(node: Node) -> list[KnownTensor]:
    first, second = node.given(0).shape, node.given(1).shape
    left = first[::-1] if node.attributes.get("transA") else first
    right = second[::-1] if node.attributes.get("transB") else second
    if len(left) != 2 or len(right) != 2 or left[1] != right[0]:
        node.refuse("it multiplies matrices that don't go together")
    node.multiply_adds = times((*left, right[1]))
    return [KnownTensor(node.given(0).element, (left[0], right[1]))]


def _along(node: Node, places: set[int], element: int) -> list[KnownTensor]:
    kept, sizes = node.attributes.get("keepdims", 1), enumerate(node.given(0).shape)
    return [
        KnownTensor(element, tuple(ONE if at in places else size for at, size in sizes if kept or at not in places))
    ]


def _reduce(node: Node) -> list[KnownTensor]:
    value = node.given(0)
    named = node.numbers(1) if len(node.inputs) > 1 else ()
    return _along(node, set(map(node.place, named)) or set(range(len(value.shape))), value.element)


def _argmax(node: Node) -> list[KnownTensor]:
    return _along(node, {node.axis()}, INT64)


def _softmax(node: Node) -> list[KnownTensor]:
    node.axis(-1)
    return _same(node)


def _cumsum(node: Node) -> list[KnownTensor]:
    node.numbers(1)
    return _same(node)


def _layer_norm(node: Node) -> list[KnownTensor]:
    value = node.given(0)
    if node.axis(-1) != len(value.shape) - 1:
        node.refuse("it normalises over more than the last axis")
    short = KnownTensor(value.element, (*value.shape[:-1], ONE))
    return [KnownTensor(value.element, value.shape), short, short][: node.outputs]


def _gru(node: Node) -> list[KnownTensor]:
    """Handle GRU, time first; the mask alone may determine how many steps a row has."""
    value, width = node.given(0), node.attributes.get("hidden_size", 0)
    if len(value.shape) != 3 or not 0 < width <= GREATEST_AXIS:
        node.refuse("it reads something else than steps of rows, or has no width")
    if not node.given(4).of_mask:
        node.refuse("how many steps it takes depends on more than the mask of clicks")
    steps, batch, features = value.shape
    cells = times((steps, batch, (3 * width, ())))
    node.multiply_adds, node.scratch_bytes = (
        times((cells, (features[0] + width, features[1]))),
        times((cells, (16, ()))),
    )
    states = [(steps, ONE, batch, (width, ())), (ONE, batch, (width, ()))]
    return [KnownTensor(value.element, each) for each in states[: node.outputs]]


@dataclass(frozen=True)
class OperatorRule:
    """The rule of one operator, with what `graphs.toml` says of it."""

    rule: Rule
    floats: bool
    attributes: Mapping[str, int]
    cost: int


RULES: Mapping[str, Rule] = {rule.__name__[1:]: rule for rule in (
    _same, _elementwise, _comparison, _where, _cast, _shape, _reshape, _squeeze, _unsqueeze, _transpose, _concat,
    _split, _slice, _pad, _expand, _range, _gather, _gather_nd, _gather_elements, _nonzero, _matmul, _gemm, _reduce,
    _argmax, _softmax, _cumsum, _layer_norm, _gru,
)}  # fmt: skip
OPERATORS = {
    name: OperatorRule(RULES[rule], form.get("floats", False), form.get("attributes", {}), form.get("cost", CHEAP))
    for rule, forms in _TABLE["operators"].items()
    for form in forms
    for name in form["names"].split()
}


@dataclass(frozen=True)
class GraphCosts:
    """What a run of a checked graph needs at most.

    axes: (input, place, axis) of each free axis; axes with the same name must have the same size. made: axes that the
    graph creates itself. memory_bytes, multiply_adds: sizes, each with its multiplicity.
    """

    axes: Sequence[tuple[str, int, str]]
    made: Mapping[str, Terms]
    memory_bytes: Mapping[Size, int]
    multiply_adds: Mapping[Size, int]

    def of(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Return the bytes and multiply-adds of a run with these axis sizes."""
        axes = dict(sizes)
        for name, terms in self.made.items():
            axes[name] = max(0, sum(bound((number, each), axes) for each, number in terms.items()))
        memory, work = (sum(bound(size, axes) * often for size, often in each.items())
                        for each in (self.memory_bytes, self.multiply_adds))  # fmt: skip
        return memory, work

    def require(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Raise GraphRefused unless a run on inputs of these shapes is allowed.

        It must be consistent and within the limits.
        """
        sizes: dict[str, int] = {}
        for name, place, axis in self.axes:
            size = shapes[name][place] if place < len(shapes[name]) else 0
            if sizes.setdefault(axis, size) != size:
                raise GraphRefused(f"input {name}: axis {axis} has size {size}, elsewhere {sizes[axis]}")
            if not 1 <= size <= GREATEST_AXIS:
                raise GraphRefused(f"axis {axis} has size {size}; must be 1 to {GREATEST_AXIS}")
        self.require_sizes(sizes)

    def require_sizes(self, sizes: Mapping[str, int]) -> None:
        """Raise GraphRefused unless a run with axes of these sizes is within the limits."""
        where = ", ".join(f"{axis} {size}" for axis, size in sizes.items()) or "no free axes"
        memory_bytes, multiply_adds = self.of(sizes)
        if memory_bytes > RUN_LIMIT_BYTES:
            raise GraphRefused(f"a run with {where} needs more than {RUN_LIMIT_BYTES} bytes")
        if multiply_adds > RUN_LIMIT_MULTIPLY_ADDS:
            raise GraphRefused(f"a run with {where} needs more than {RUN_LIMIT_MULTIPLY_ADDS} multiply-adds")


def check_graph(content: bytes) -> GraphCosts:
    """Return what a run costs.

    Raises GraphRefused, naming node, operator and limit, for a graph that no release may contain.
    """
    if len(content) > FILE_LIMIT_BYTES:
        raise GraphRefused(f"it has {len(content)} bytes, the limit is {FILE_LIMIT_BYTES}")
    model = _WireReader(content).message(len(content), MODEL, "model")
    if not LIMITS["oldest_ir"] <= model.get("ir_version", 0) <= LIMITS["newest_ir"]:
        raise GraphRefused(f"its ir_version is not one of {LIMITS['oldest_ir']} to {LIMITS['newest_ir']}")
    if [(each.get("domain", ""), each.get("version")) for each in model["operator_sets"]] != [("", OPSET)]:
        raise GraphRefused(f"its operator sets must be exactly ONNX's own, version {OPSET}")
    if "graph" not in model:
        raise GraphRefused("it has no graph")
    return _Course(model["graph"]).costs()


class _Course:
    """State of one walk through a graph, node by node."""

    def __init__(self, graph: Parsed) -> None:
        self._graph = graph
        self._values: dict[str, KnownTensor] = {}
        self._made: dict[str, Terms] = {}
        self._memory: Counter[Size] = Counter()
        self._work: Counter[Size] = Counter()

    def costs(self) -> GraphCosts:
        nodes = self._graph["nodes"]
        if len(nodes) > LIMITS["nodes"]:
            raise GraphRefused(f"it has {len(nodes)} nodes, the limit is {LIMITS['nodes']}")
        free: list[tuple[str, int, str]] = []
        for each in self._graph["inputs"]:
            name, element, shape = _declared(each, "input")
            axes = [(name, place, size[1][0]) for place, size in enumerate(shape) if size[1]]
            if axes and name.startswith("p."):
                raise GraphRefused(f"input {name} is a parameter but has the free axis {axes[0][2]}")
            free += axes
            self._define(name, KnownTensor(element, shape, of_mask=name in _TABLE["masks"]))
        for each in self._graph["initializers"]:
            self._define(each.get("name", ""), _initializer(each))
        for place, each in enumerate(nodes):
            try:
                self._step(each)
            except GraphRefused as refused:
                raise GraphRefused(f"node {place} ({each.get('operator', '')}): {refused}") from refused
        for each in self._graph["outputs"]:
            name, element, shape = _declared(each, "output")
            value = self._values.get(name)
            if value is None or (value.element, value.shape) != (element, shape):
                raise GraphRefused(f"output {name} is declared with another shape or type than it has")
        costs = GraphCosts(free, self._made, self._memory, self._work)
        used = {axis for _, _, axis in free}
        costs.require_sizes({axis: size for axis, size in AXES_OF_A_RUN.items() if axis in used})
        return costs

    def _define(self, name: str, value: KnownTensor) -> None:
        if not name or name in self._values:
            raise GraphRefused(f"the name '{name}' is empty or already used")
        if len(value.shape) > RANK_LIMIT:
            raise GraphRefused(f"{name} has {len(value.shape)} axes, the limit is {RANK_LIMIT}")
        self._values[name] = value
        self._memory[times(value.shape)] += WIDTHS_BYTES[value.element]

    def _step(self, given: Parsed) -> None:
        operator = OPERATORS.get(given.get("operator", ""))
        if operator is None or given.get("domain"):
            raise GraphRefused("an operator that a release's graph may not contain")
        if missing := [name for name in given["inputs"] if name and name not in self._values]:
            raise GraphRefused(f"its input {missing[0]} is not computed by any node before it")
        inputs = [self._values[name] if name else None for name in given["inputs"]]
        node = Node(inputs, len(given["outputs"]), _attributes(given, operator), self._made)
        if operator.floats and node.given(0).element not in (FLOAT, DOUBLE):
            node.refuse("it works on whole numbers, which no graph of a release does")
        results = operator.rule(node)
        if len(results) != node.outputs:
            node.refuse(f"it has {node.outputs} outputs")
        of_mask = given["operator"] == "Shape" or all(each is None or each.of_mask for each in inputs)
        for name, value in zip(given["outputs"], results, strict=True):
            if name:
                self._define(name, replace(value, of_mask=of_mask))
        for each in (*inputs, *results):
            if each is not None:
                self._work[times(each.shape)] += operator.cost
        self._memory[node.scratch_bytes] += 1
        self._work[node.multiply_adds] += 1


def _attributes(given: Parsed, operator: OperatorRule) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in given["attributes"]:
        name, kind = each.get("name", ""), each.get("type")
        if operator.attributes.get(name) != kind or name in found:
            raise GraphRefused(f"its attribute {name} is not allowed")
        held = {1: "f", 2: "i", 3: "s", 7: "ints"}[kind]
        if any(each.get(part) not in (None, []) for part in {"f", "i", "s", "ints"} - {held}):
            raise GraphRefused(f"its attribute {name} has values of other types")
        found[name] = each.get(held, {"f": bytes(4), "i": 0, "s": ""}.get(held))
        if name in _TABLE["flags"] and found[name] not in (0, 1):
            raise GraphRefused(f"its attribute {name} is neither 0 nor 1")
    return found


def _declared(given: Parsed, what: str) -> tuple[str, int, Shape]:
    name, tensor = given.get("name", ""), given.get("type", {}).get("tensor", {})
    if tensor.get("element") not in WIDTHS_BYTES or "shape" not in tensor:
        raise GraphRefused(f"{what} {name}: it has no shape, or an unsupported element type")
    shape: list[Size] = []
    for axis in tensor["shape"]["axes"]:
        size, free = axis.get("size"), axis.get("name")
        if (size is None) == (free is None):
            raise GraphRefused(f"{what} {name}: an axis has neither a size nor a name, or both")
        if free is not None and free not in AXES_OF_A_RUN:
            raise GraphRefused(f"{what} {name}: its axis {free} is not one of {', '.join(AXES_OF_A_RUN)}")
        if size is not None and not 0 < size <= GREATEST_AXIS:
            raise GraphRefused(f"{what} {name}: an axis is not within 1 to {GREATEST_AXIS}")
        shape.append((size, ()) if free is None else (1, (free,)))
    return name, tensor["element"], tuple(shape)


def _initializer(given: Parsed) -> KnownTensor:
    element, dims, raw = given.get("element"), given["dims"], given.get("raw", b"")
    if element not in WIDTHS_BYTES or len(dims) > RANK_LIMIT or any(size < 0 for size in dims):
        raise GraphRefused(f"initializer {given.get('name', '')}: an unsupported type or shape")
    if (needed := math.prod(dims) * WIDTHS_BYTES[element]) != len(raw):
        raise GraphRefused(f"initializer {given.get('name', '')}: {len(raw)} bytes, its shape needs {needed}")
    numbers = np.frombuffer(raw, {INT64: "<i8", FLOAT: "<f4"}.get(element, "u1"))
    # whole numbers that say sizes; float32 ones begin and step a Range
    known = (
        len(dims) < 2
        and len(numbers) <= LIMITS["content"]
        and (element == INT64 or (element == FLOAT and raw in FLOATS_OF_A_RANGE))
    )
    content = tuple((int(each), ()) for each in numbers) if known else None
    shape = tuple((size, ()) for size in dims)
    return KnownTensor(element, shape, content, of_mask=True, some=element == INT64 and bool(numbers.any()))
