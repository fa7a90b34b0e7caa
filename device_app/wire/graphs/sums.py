"""Rules of operators that multiply and add up along axes, and what they cost besides their results."""

from __future__ import annotations

from device_app.wire.graphs.layout import KnownTensors
from device_app.wire.graphs.sizes import Size, product
from device_app.wire.graphs.values import INT32, INT64, KnownTensor, Node, joined


def matmul(node: Node) -> KnownTensors:
    """Products of matrices; further axes are broadcast, and a list counts as a row or a column."""
    first, second = _alike(node)
    left = first.shape if len(first.shape) > 1 else (1, *first.shape)
    right = second.shape if len(second.shape) > 1 else (*second.shape, 1)
    if not first.shape or not second.shape or left[-1] != right[-2]:
        node.refuse(f"it multiplies {list(first.shape)} with {list(second.shape)}")
    beside = joined(node, left[:-2], right[:-2])
    node.multiply_adds = node.multiply_adds + product((*beside, left[-2], left[-1], right[-1]))
    rows = left[-2:-1] if len(first.shape) > 1 else ()
    columns = right[-1:] if len(second.shape) > 1 else ()
    return [KnownTensor(first.element, (*beside, *rows, *columns))]


def _alike(node: Node) -> tuple[KnownTensor, KnownTensor]:
    first, second = node.given(0), node.given(1)
    if first.element != second.element:
        node.refuse("its inputs are of different types")
    return first, second


def gemm(node: Node) -> KnownTensors:
    """One product of two matrices, either transposed, and something added."""
    first, second = _alike(node)
    if len(first.shape) != 2 or len(second.shape) != 2:
        node.refuse(f"it multiplies {list(first.shape)} with {list(second.shape)}")
    rows, inner = first.shape[::-1] if node.attributes.get("transA", 0) else first.shape
    also, columns = second.shape[::-1] if node.attributes.get("transB", 0) else second.shape
    if inner != also:
        node.refuse(f"it multiplies {[rows, inner]} with {[also, columns]}")
    added = node.maybe(2)
    if added is not None:
        node.same(
            joined(node, added.shape, (rows, columns)), (rows, columns), "what it adds, broadcast, and the product"
        )
        if added.element != first.element:
            node.refuse("its inputs are of different types")
    node.multiply_adds = node.multiply_adds + product((rows, inner, columns))
    return [KnownTensor(first.element, (rows, columns))]


def softmax(node: Node) -> KnownTensors:
    """Along one axis."""
    value = node.given(0)
    if node.axis(node.attributes.get("axis", -1), len(value.shape)) < len(value.shape) - 1:
        node.scratch_bytes = node.scratch_bytes + value.count * 16  # the axis is moved to the end and back
    return [KnownTensor(value.element, value.shape)]


def reduced(node: Node) -> KnownTensors:
    """Sums, means, extremes and lengths along axes; along all, where none is named."""
    value = node.given(0)
    rank = len(value.shape)
    named = node.numbers(1) if node.maybe(1) is not None else ()
    axes = {node.axis(each, rank) for each in named} or set(range(rank))
    node.scratch_bytes = node.scratch_bytes + value.count * 8
    return [KnownTensor(value.element, _reduced(node, value, axes))]


def _reduced(node: Node, value: KnownTensor, axes: set[int]) -> tuple[Size, ...]:
    if node.attributes.get("keepdims", 1):
        return tuple(1 if place in axes else size for place, size in enumerate(value.shape))
    return tuple(size for place, size in enumerate(value.shape) if place not in axes)


def argmax(node: Node) -> KnownTensors:
    """Where the greatest is along an axis."""
    value = node.given(0)
    axis = node.axis(node.attributes.get("axis", 0), len(value.shape))
    node.scratch_bytes = node.scratch_bytes + value.count * 8
    return [KnownTensor(INT64, _reduced(node, value, {axis}))]


def cumulated(node: Node) -> KnownTensors:
    """Sums up to each place."""
    value = node.given(0)
    if len(axes := node.numbers(1)) != 1:
        node.refuse(f"it adds up along axes {list(axes)}")
    node.axis(axes[0], len(value.shape))
    return [KnownTensor(value.element, value.shape)]


def layer_norm(node: Node) -> KnownTensors:
    """Over the last axis: the result, the mean and 1 / deviation."""
    value = node.given(0)
    if node.axis(node.attributes.get("axis", -1), len(value.shape)) != len(value.shape) - 1:
        node.refuse("it normalises over more than the last axis")
    for place in range(1, len(node.inputs)):
        node.same(node.given(place).shape, value.shape[-1:], "the last axis and its scales")
        if node.given(place).element != value.element:
            node.refuse("its inputs are of different types")
    short = KnownTensor(value.element, (*value.shape[:-1], 1))
    return [value, short, short][: node.outputs]


def gru(node: Node) -> KnownTensors:
    """A GRU, time first; how many steps a row has may follow from the mask alone."""
    value, input_, recurrent, bias, lengths = (node.given(place) for place in range(5))
    start, width = node.maybe(5), node.attributes.get("hidden_size", 0)
    if len(value.shape) != 3:
        node.refuse(f"it reads {list(value.shape)}")
    steps, batch, features = value.shape
    wanted = [(1, 3 * width, features), (1, 3 * width, width), (1, 6 * width), (batch,), (1, batch, width)]
    for given, shape in zip((input_, recurrent, bias, lengths, start), wanted, strict=True):
        if given is not None:
            node.same(given.shape, shape, "what it is given and what it takes")
            if given.element != (INT32 if given is lengths else value.element):
                node.refuse("its inputs are of the wrong types")
    if not lengths.of_mask:
        node.refuse("how many steps it takes depends on more than the mask of clicks")
    cells = steps * batch * (3 * width)
    node.multiply_adds = node.multiply_adds + cells * (features + width)
    node.scratch_bytes = node.scratch_bytes + cells * 16
    states = [KnownTensor(value.element, (steps, 1, batch, width)), KnownTensor(value.element, (1, batch, width))]
    return states[: node.outputs]
