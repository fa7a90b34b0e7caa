"""Operators that move numbers without computing: views, slices, pieces, padding, constants, and rows by number.

Rows by number are embeddings, indices, gathers, and their gradients, which are scatters.
"""

from typing import Any

import numpy as np
import torch
from torch import fx

from exporters.translate import FxNode, Rule, Shape, Translator, Value, joined, numpy_type, shape_of, size_of, sizes_of

NO_END = 2**63 - 1


def reshape(t: Translator, node: FxNode) -> Value:
    value = t.value(node.args[0])
    if not value.shape:
        return value  # one number, to be broadcast
    return t.reshape(t.full(node.args[0]), shape_of(node))


def unsqueeze(t: Translator, node: FxNode) -> Value:
    """A new axis of size 1; a deferred broadcast stays deferred."""
    value, axis = t.value(node.args[0]), int(node.args[1])
    after = -axis - 1 if axis < 0 else len(shape_of(node)) - 1 - axis  # axes after the new one
    if after >= len(value.shape):
        return value
    place = len(value.shape) - after
    return t.reshape(value, (*value.shape[:place], 1, *value.shape[place:]))


def permute(t: Translator, node: FxNode) -> Value:
    order: Any = node.args[1]
    value = t.value(node.args[0])
    if not value.shape:
        return value
    return t.permute(t.full(node.args[0]), tuple(each % len(order) for each in order))


def number_everywhere(t: Translator, node: FxNode) -> Value:
    """full, zeros, ones and the like: one number with a deferred broadcast."""
    name = str(node.target)
    content = 0 if "zeros" in name else 1 if "ones" in name else node.args[0 if "scalar_tensor" in name else 1]
    return t.constant(np.asarray(content, dtype=numpy_type(node.meta["val"].dtype)))


def arange(t: Translator, node: FxNode) -> Value:
    start, end = ([0, *node.args] if len(node.args) == 1 else [*node.args])[:2]
    step = node.args[2] if len(node.args) > 2 else 1
    dtype = node.meta["val"].dtype
    if isinstance(size_of(end), int) and not isinstance(start, fx.Node):
        return Value(
            t.writer.constant(numbers := np.arange(start, end, step).astype(numpy_type(dtype))), numbers.shape, numbers
        )
    bounds = [t.operand(each, dtype).name for each in (start, end, step)]
    return t.emit("Range", bounds, shape_of(node))


def concat(t: Translator, node: FxNode) -> Value:
    parts: Any = node.args[0]
    axis = int(node.args[1]) if len(node.args) > 1 else 0
    kept = [each for each in parts if shape_of(each) != (0,)]
    return t.emit("Concat", [t.full(each).name for each in kept], shape_of(node), axis=axis)


def split(t: Translator, node: FxNode) -> list[Value]:
    """Pieces of given sizes along an axis."""
    lengths: Any = node.args[1]
    axis = int(node.args[2]) if len(node.args) > 2 else 0
    source = t.full(node.args[0])
    names = t.writer.add("Split", [source.name, t.integers(*lengths)], len(lengths), axis=axis)
    shapes = [tuple(size_of(size) for size in each.shape) for each in node.meta["val"]]
    return [Value(name, shape) for name, shape in zip(names, shapes, strict=True)]


def piece(t: Translator, node: FxNode) -> Value:
    held: Value | list[Value] = t.values[node.args[0]]
    if isinstance(held, Value):
        raise TypeError(f"{node.args[0]} holds one value, expected several")
    chosen: Value = held[node.args[1]]
    return chosen


def _bounds(node: FxNode, at: int) -> tuple[int, Any, Any, int]:
    """Return axis, start, end and step of slice(x, axis, start, end, step), with defaults filled in."""
    axis, start, end, step = [*node.args[at:], *[None] * 4][:4]
    return axis or 0, 0 if start is None else size_of(start), NO_END if end is None else size_of(end), step or 1


def slice_(t: Translator, node: FxNode) -> Value:
    axis, start, end, step = _bounds(node, 1)
    shape: Shape = shape_of(node.args[0])
    if start == 0 and step == 1 and end in (NO_END, shape[axis]):
        return t.value(node.args[0])
    value = t.full(node.args[0])
    ends = t.integers(end) if isinstance(end, int) else t.size(end).name
    starts = t.integers(start) if isinstance(start, int) else t.size(start).name
    steps = [] if step == 1 else [t.integers(step)]
    return t.emit("Slice", [value.name, starts, ends, t.integers(axis), *steps], shape_of(node))


def slice_scatter(t: Translator, node: FxNode) -> Value:
    """base with a slice replaced; the gradient of a slice, where base is zero and the rest is padding."""
    base, source = t.value(node.args[0]), t.full(node.args[1])
    axis, start, end, step = _bounds(node, 2)
    shape = shape_of(node)
    axis %= len(shape)
    length = shape[axis]
    if start == 0 and step == 1 and end in (NO_END, length):
        return source
    if not (isinstance(length, int) and isinstance(start, int) and step == 1):
        raise NotImplementedError("slices of a free axis, or with a step, have no exported gradient")
    start, end = start % length if start < 0 else start, min(end % length if end < 0 else end, length)
    if base.constant is not None and base.constant.ndim == 0 and not base.constant.any():
        before, after = [0] * len(shape), [0] * len(shape)
        before[axis], after[axis] = start, length - end
        return t.emit("Pad", [source.name, t.integers(*before, *after)], shape)
    target = t.full(node.args[0])
    parts = [source.name]
    if start:
        head = t.emit(
            "Slice",
            [target.name, t.integers(0), t.integers(start), t.integers(axis)],
            (*shape[:axis], start, *shape[axis + 1 :]),
        )
        parts.insert(0, head.name)
    if end < length:
        tail = t.emit(
            "Slice",
            [target.name, t.integers(end), t.integers(length), t.integers(axis)],
            (*shape[:axis], length - end, *shape[axis + 1 :]),
        )
        parts.append(tail.name)
    return t.emit("Concat", parts, shape, axis=axis)


def select(t: Translator, node: FxNode) -> Value:
    value = t.full(node.args[0])
    axis, place = (int(each) for each in node.args[1:])
    index = t.writer.constant(np.asarray(place, dtype=np.int64))
    return t.emit("Gather", [value.name, index], shape_of(node), axis=axis % len(value.shape))


def pad(t: Translator, node: FxNode) -> Value:
    value = t.full(node.args[0])
    given: Any = node.args[1]
    filling = node.args[2] if len(node.args) > 2 else 0
    rank = len(value.shape)
    before, after = [0] * rank, [0] * rank
    for place in range(len(given) // 2):  # torch counts axes from the last
        before[rank - 1 - place], after[rank - 1 - place] = given[2 * place], given[2 * place + 1]
    extra = [] if filling == 0 else [t.operand(filling, node.meta["val"].dtype).name]
    return t.emit("Pad", [value.name, t.integers(*before, *after), *extra], shape_of(node))


def flip(t: Translator, node: FxNode) -> Value:
    value = t.full(node.args[0])
    axes: Any = node.args[1]
    count = len(axes)
    bounds = [t.integers(*[-1] * count), t.integers(*[-NO_END] * count), t.integers(*axes), t.integers(*[-1] * count)]
    return t.emit("Slice", [value.name, *bounds], value.shape)


def rows(t: Translator, node: FxNode) -> Value:
    """Translate embedding(table, numbers) and index_select(x, axis, numbers)."""
    value = t.full(node.args[0])
    chosen = "index_select" in str(node.target)
    numbers = t.full(node.args[2 if chosen else 1])
    axis = int(node.args[1]) if chosen else 0
    return t.emit("Gather", [value.name, numbers.name], shape_of(node), axis=axis)


def _numbers(t: Translator, indices: Any) -> str:
    """Indices of the first axes as one tensor [..., axes], for GatherND and ScatterND."""
    if any(each is None or each.meta["val"].dtype == torch.bool for each in indices):
        raise NotImplementedError("only whole-number indices of the first axes can be exported here")
    shape = joined(*(shape_of(each) for each in indices))
    parts = [t.reshape(t.broadcast(t.value(each), shape), (*shape, 1)).name for each in indices]
    return parts[0] if len(parts) == 1 else t.writer.add("Concat", parts, axis=-1)[0]


def index(t: Translator, node: FxNode) -> Value:
    """x[numbers], with numbers for one axis or for the first few."""
    value = t.full(node.args[0])
    indices: Any = node.args[1]
    given = [place for place, each in enumerate(indices) if each is not None]
    if len(given) == 1:
        numbers = indices[given[0]]
        if numbers.meta["val"].dtype == torch.bool:
            raise NotImplementedError("indexing with a mask gives a size that depends on data")
        return t.emit("Gather", [value.name, t.full(numbers).name], shape_of(node), axis=given[0])
    return t.emit("GatherND", [value.name, _numbers(t, indices)], shape_of(node))


def index_put(t: Translator, node: FxNode) -> Value:
    """x with rows replaced or added to: repeated numbers add up."""
    indices: Any = node.args[1]
    base = t.full(node.args[0])
    numbers = _numbers(t, indices)
    rest = base.shape[len(indices) :]
    updates = t.broadcast(t.value(node.args[2]), (*joined(*(shape_of(each) for each in indices)), *rest))
    adds = {"reduction": "add"} if len(node.args) > 3 and node.args[3] else {}
    return t.emit("ScatterND", [base.name, numbers, updates.name], base.shape, **adds)


def rows_gradient(t: Translator, node: FxNode) -> Value:
    """The gradient of an embedding's table: repeated rows add up, unused rows are zero.

    Correct on one thread only: see docs/decisions/030.
    """
    gradient, numbers = t.full(node.args[0]), t.full(node.args[1])
    padding, scaled = [*node.args[3:], -1, False][:2]
    if padding != -1 or scaled:
        raise NotImplementedError("embedding is exported without padding_idx and scale_grad_by_freq only")
    zero = t.operand(0, node.meta["val"].dtype)
    table = t.emit("Expand", [zero.name, t.sizes(shape_of(node))], shape_of(node))
    places = t.reshape(numbers, (*numbers.shape, 1))
    return t.emit("ScatterND", [table.name, places.name, gradient.name], table.shape, reduction="add")


def gather(t: Translator, node: FxNode) -> Value:
    value, numbers = t.full(node.args[0]), t.full(node.args[2])
    return t.emit("GatherElements", [value.name, numbers.name], shape_of(node), axis=int(node.args[1]))


def scatter(*, adds: bool) -> Rule:
    def rule(t: Translator, node: FxNode) -> Value:
        base, numbers = t.full(node.args[0]), t.full(node.args[2])
        updates = t.broadcast(t.operand(node.args[3], node.meta["val"].dtype), numbers.shape)
        attributes: dict[str, Any] = {"axis": int(node.args[1])}
        if adds:
            attributes["reduction"] = "add"
        return t.emit("ScatterElements", [base.name, numbers.name, updates.name], base.shape, **attributes)

    return rule


def real_places(t: Translator, node: FxNode) -> list[Value]:
    """Translate models.layers.real_rows.real_places.

    The number of real rows is known only at each run.
    """
    mask = t.full(node.args[0])
    dtype = node.args[0].meta["val"].dtype
    places, shown = (sizes_of(each) for each in node.meta["val"])
    ones = t.cast(t.cast(mask, dtype, torch.bool), torch.bool, torch.int64)
    flat = t.reshape(ones, shown)
    rest = t.writer.add("Slice", [flat.name, t.integers(1), t.integers(NO_END), t.integers(0)])[0]
    kept = t.writer.add("Concat", [t.integers(1), rest], axis=0)[0]
    numbers = t.writer.add("NonZero", [kept])[0]
    found = t.emit("Reshape", [numbers, t.integers(-1)], places)
    t.axes[places[0]] = (found.name, 0)
    counted = t.writer.add("CumSum", [kept, t.integers(0)])[0]
    return [found, t.emit("Sub", [counted, t.integers(1)], shown)]
