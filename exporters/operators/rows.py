"""Access to rows by number: embeddings, indices, gathers, and their gradients, which are scatters."""

from __future__ import annotations

from typing import Any

import torch

from exporters.operators.layout import NO_END
from exporters.translate import FxNode, Rule, Translator, Value, joined, shape_of, sizes_of


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
            raise NotImplementedError("a mask as index gives a size that depends on data")
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
