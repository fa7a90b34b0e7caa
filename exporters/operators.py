"""What each of torch's plain operators becomes in ONNX. One dict; an operator that is not in it is an error."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import fx

from exporters.translate import Rule, Shape, Translator, Value, joined, numpy_type, shape_of, size_of

Node = Any  # fx.Node, whose arguments torch types so widely that each use would need a cast
aten: Any = torch.ops.aten
NO_END = 2**63 - 1


def same(t: Translator, node: Node) -> Value:
    """Copies and views that change nothing."""
    return t.value(node.args[0])


def arithmetic(op: str) -> Rule:
    """Elementwise, in the dtype of the result."""

    def rule(t: Translator, node: Node) -> Value:
        dtype = node.meta["val"].dtype
        operands = [t.operand(each, dtype) for each in node.args]
        if (factor := node.kwargs.get("alpha", 1)) != 1:
            operands[1] = multiply(t, operands[1], t.operand(factor, dtype))
        if all(each.constant is not None for each in operands):
            return t.constant(_compute(node, [each.constant for each in operands]))
        return t.emit(op, [each.name for each in operands], joined(*(each.shape for each in operands)))

    return rule


def _compute(node: fx.Node, operands: list[Any]) -> Any:
    """Elementwise operators of constants are worked out here."""
    target: Any = node.target
    result = target(*(torch.as_tensor(np.asarray(each)) for each in operands))
    return result.to(node.meta["val"].dtype).numpy()


def multiply(t: Translator, a: Value, b: Value) -> Value:
    return t.emit("Mul", [a.name, b.name], joined(a.shape, b.shape))


def reversed_subtraction(t: Translator, node: Node) -> Value:
    dtype = node.meta["val"].dtype
    a, b = (t.operand(each, dtype) for each in node.args)
    return t.emit("Sub", [b.name, a.name], joined(a.shape, b.shape))


def comparison(op: str, *, negated: bool = False) -> Rule:
    """Elementwise, in the dtype that the operands have in common; the result is bool."""

    def rule(t: Translator, node: Node) -> Value:
        dtype = node.args[0].meta["val"].dtype
        other = node.args[1]
        if isinstance(other, fx.Node) and isinstance(other.meta["val"], torch.Tensor):
            dtype = torch.promote_types(dtype, other.meta["val"].dtype)
        operands = [t.operand(each, dtype) for each in node.args]
        shape = joined(*(each.shape for each in operands))
        if all(each.constant is not None for each in operands):
            a, b = (torch.as_tensor(np.asarray(each.constant)) for each in operands)
            target: Any = getattr(aten, str(node.target).split(".")[1]).Tensor
            return t.constant(target(a, b).numpy())
        result = t.emit(op, [each.name for each in operands], shape)
        return t.emit("Not", [result.name], shape) if negated else result

    return rule


def unary(op: str, **attributes: Any) -> Rule:
    def rule(t: Translator, node: Node) -> Value:
        dtype = node.meta["val"].dtype
        value = t.operand(node.args[0], dtype)
        if value.constant is not None and len(node.args) == 1:
            return t.constant(_compute(node, [value.constant]))
        return t.emit(op, [value.name], value.shape, **attributes)

    return rule


def composed(*ops: str) -> Rule:
    """Unary operators one after another."""

    def rule(t: Translator, node: Node) -> Value:
        value = t.operand(node.args[0], node.meta["val"].dtype)
        for op in ops:
            value = t.emit(op, [value.name], value.shape)
        return value

    return rule


def power(t: Translator, node: Node) -> Value:
    dtype = node.meta["val"].dtype
    value, exponent = t.operand(node.args[0], dtype), node.args[1]
    if exponent == 2:
        return multiply(t, value, value)
    if exponent == 0.5:
        return t.emit("Sqrt", [value.name], value.shape)
    other = t.operand(exponent, dtype)
    return t.emit("Pow", [value.name, other.name], joined(value.shape, other.shape))


def clamp(t: Translator, node: Node) -> Value:
    """clamp(x, low, high) and hardtanh; a bound may be missing."""
    dtype = node.meta["val"].dtype
    value = t.operand(node.args[0], dtype)
    bounds = [*node.args[1:], None, None][:2]
    low = bounds[0] if bounds[0] is not None else node.kwargs.get("min")
    high = bounds[1] if bounds[1] is not None else node.kwargs.get("max")
    for op, bound in (("Max", low), ("Min", high)):
        if bound is not None:
            other = t.operand(bound, dtype)
            value = t.emit(op, [value.name, other.name], joined(value.shape, other.shape))
    return value


def gelu(t: Translator, node: Node) -> Value:
    """x (1 + erf(x / sqrt 2)) / 2."""
    if node.kwargs.get("approximate", "none") != "none":
        raise NotImplementedError("gelu is exported in its exact form only")
    x = t.operand(node.args[0], torch.float32)
    scaled = multiply(t, x, t.operand(1 / math.sqrt(2), torch.float32))
    erf = t.emit("Erf", [scaled.name], scaled.shape)
    plus = t.emit("Add", [erf.name, t.operand(1.0, torch.float32).name], erf.shape)
    return multiply(t, multiply(t, x, plus), t.operand(0.5, torch.float32))


def where(t: Translator, node: Node) -> Value:
    dtype = node.meta["val"].dtype
    condition = t.operand(node.args[0], torch.bool)
    chosen = [t.operand(each, dtype) for each in node.args[1:]]
    shape = joined(condition.shape, *(each.shape for each in chosen))
    return t.emit("Where", [condition.name, *(each.name for each in chosen)], shape)


def converted(t: Translator, node: Node) -> Value:
    source: Any = node.args[0]
    return t.cast(t.value(source), source.meta["val"].dtype, node.meta["val"].dtype)


# -- shapes


def reshape(t: Translator, node: Node) -> Value:
    value = t.value(node.args[0])
    if not value.shape:
        return value  # one number, to be broadcast
    return t.reshape(t.full(node.args[0]), shape_of(node))


def unsqueeze(t: Translator, node: Node) -> Value:
    """A new axis of size 1; a broadcast that was put off stays so."""
    value, axis = t.value(node.args[0]), int(node.args[1])
    after = -axis - 1 if axis < 0 else len(shape_of(node)) - 1 - axis  # axes behind the new one
    if after >= len(value.shape):
        return value
    place = len(value.shape) - after
    return t.reshape(value, (*value.shape[:place], 1, *value.shape[place:]))


def permute(t: Translator, node: Node) -> Value:
    order: Any = node.args[1]
    value = t.value(node.args[0])
    if not value.shape:
        return value
    return t.permute(t.full(node.args[0]), tuple(each % len(order) for each in order))


def number_everywhere(t: Translator, node: Node) -> Value:
    """full, zeros, ones and their like: one number; the broadcast is put off."""
    name = str(node.target)
    content = 0 if "zeros" in name else 1 if "ones" in name else node.args[0 if "scalar_tensor" in name else 1]
    return t.constant(np.asarray(content, dtype=numpy_type(node.meta["val"].dtype)))


def arange(t: Translator, node: Node) -> Value:
    start, end = ([0, *node.args] if len(node.args) == 1 else [*node.args])[:2]
    step = node.args[2] if len(node.args) > 2 else 1
    dtype = node.meta["val"].dtype
    if isinstance(size_of(end), int) and not isinstance(start, fx.Node):
        return Value(
            t.writer.constant(numbers := np.arange(start, end, step).astype(numpy_type(dtype))), numbers.shape, numbers
        )
    bounds = [t.operand(each, dtype).name for each in (start, end, step)]
    return t.emit("Range", bounds, shape_of(node))


def concat(t: Translator, node: Node) -> Value:
    parts: Any = node.args[0]
    axis = int(node.args[1]) if len(node.args) > 1 else 0
    kept = [each for each in parts if shape_of(each) != (0,)]
    return t.emit("Concat", [t.full(each).name for each in kept], shape_of(node), axis=axis)


def split(t: Translator, node: Node) -> list[Value]:
    """Pieces of given sizes along an axis."""
    lengths: Any = node.args[1]
    axis = int(node.args[2]) if len(node.args) > 2 else 0
    source = t.full(node.args[0])
    names = t.writer.add("Split", [source.name, t.integers(*lengths)], len(lengths), axis=axis)
    shapes = [tuple(size_of(size) for size in each.shape) for each in node.meta["val"]]
    return [Value(name, shape) for name, shape in zip(names, shapes, strict=True)]


def piece(t: Translator, node: Node) -> Value:
    held: Value | list[Value] = t.values[node.args[0]]
    if isinstance(held, Value):
        raise TypeError(f"{node.args[0]} holds one value, several were expected")
    chosen: Value = held[node.args[1]]
    return chosen


def _bounds(node: Node, at: int) -> tuple[int, Any, Any, int]:
    """axis, start, end and step of slice(x, axis, start, end, step), with the defaults put in."""
    axis, start, end, step = [*node.args[at:], *[None] * 4][:4]
    return axis or 0, 0 if start is None else size_of(start), NO_END if end is None else size_of(end), step or 1


def slice_(t: Translator, node: Node) -> Value:
    axis, start, end, step = _bounds(node, 1)
    shape: Shape = shape_of(node.args[0])
    if start == 0 and step == 1 and end in (NO_END, shape[axis]):
        return t.value(node.args[0])
    value = t.full(node.args[0])
    ends = t.integers(end) if isinstance(end, int) else t.size(end).name
    starts = t.integers(start) if isinstance(start, int) else t.size(start).name
    steps = [] if step == 1 else [t.integers(step)]
    return t.emit("Slice", [value.name, starts, ends, t.integers(axis), *steps], shape_of(node))


def slice_scatter(t: Translator, node: Node) -> Value:
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
    whole = t.full(node.args[0])
    parts = [source.name]
    if start:
        head = t.emit(
            "Slice",
            [whole.name, t.integers(0), t.integers(start), t.integers(axis)],
            (*shape[:axis], start, *shape[axis + 1 :]),
        )
        parts.insert(0, head.name)
    if end < length:
        tail = t.emit(
            "Slice",
            [whole.name, t.integers(end), t.integers(length), t.integers(axis)],
            (*shape[:axis], length - end, *shape[axis + 1 :]),
        )
        parts.append(tail.name)
    return t.emit("Concat", parts, shape, axis=axis)


def select(t: Translator, node: Node) -> Value:
    value = t.full(node.args[0])
    axis, place = (int(each) for each in node.args[1:])
    index = t.writer.constant(np.asarray(place, dtype=np.int64))
    return t.emit("Gather", [value.name, index], shape_of(node), axis=axis % len(value.shape))


def pad(t: Translator, node: Node) -> Value:
    value = t.full(node.args[0])
    given: Any = node.args[1]
    filling = node.args[2] if len(node.args) > 2 else 0
    rank = len(value.shape)
    before, after = [0] * rank, [0] * rank
    for place in range(len(given) // 2):  # torch counts axes from the last
        before[rank - 1 - place], after[rank - 1 - place] = given[2 * place], given[2 * place + 1]
    extra = [] if filling == 0 else [t.operand(filling, node.meta["val"].dtype).name]
    return t.emit("Pad", [value.name, t.integers(*before, *after), *extra], shape_of(node))


def flip(t: Translator, node: Node) -> Value:
    value = t.full(node.args[0])
    axes: Any = node.args[1]
    count = len(axes)
    bounds = [t.integers(*[-1] * count), t.integers(*[-NO_END] * count), t.integers(*axes), t.integers(*[-1] * count)]
    return t.emit("Slice", [value.name, *bounds], value.shape)


# -- products


def matrix_product(t: Translator, node: Node) -> Value:
    """mm and addmm; a transposed factor is left to Gemm."""
    *bias, a, b = (t.full(each) for each in node.args)
    if any(node.kwargs.get(name, 1) != 1 for name in ("alpha", "beta")):
        raise NotImplementedError("addmm is exported with alpha = beta = 1 only")
    flags = {}
    names = []
    for name, each in (("transA", a), ("transB", b)):
        source, order = t.permuted.get(each.name, (each, (0, 1)))
        if order == (1, 0):
            flags[name] = 1
        names.append(source.name)
    if bias:
        return t.emit("Gemm", [*names, t.value(node.args[0]).name], shape_of(node), **flags)
    return t.emit("Gemm" if flags else "MatMul", names, shape_of(node), **flags)


def batched_product(t: Translator, node: Node) -> Value:
    """bmm. torch folds [b, h, m, k] to [b h, m, k] before it; ONNX's MatMul takes the four axes as they are."""
    a, b = (t.full(each) for each in node.args)
    a4, b4 = (t.reshaped.get(each.name, each) for each in (a, b))
    shape = shape_of(node)
    if (
        len(a4.shape) == len(b4.shape) == 4
        and a4.shape[-2:] == a.shape[-2:]
        and b4.shape[-2:] == b.shape[-2:]
        and a4.shape[:2] == b4.shape[:2]
    ):
        whole = t.emit("MatMul", [a4.name, b4.name], (*a4.shape[:3], b4.shape[3]))
        return t.reshape(whole, shape)
    return t.emit("MatMul", [a.name, b.name], shape)


# -- along axes


def reduction(op: str) -> Rule:
    def rule(t: Translator, node: Node) -> Value:
        source: Any = node.args[0]
        value = t.cast(t.full(source), source.meta["val"].dtype, node.meta["val"].dtype)
        axes: Any = node.args[1] if len(node.args) > 1 else None
        keep = int(bool(node.args[2])) if len(node.args) > 2 else 0
        if isinstance(axes, int):
            axes = [axes]
        rank = len(value.shape)
        if all(value.shape[axis] == 1 for axis in axes or range(rank)):
            return t.reshape(value, shape_of(node))
        extra = [t.integers(*(axis % rank for axis in axes))] if axes else []
        return t.emit(op, [value.name, *extra], shape_of(node), keepdims=keep)

    return rule


def length(t: Translator, node: Node) -> Value:
    """The Euclidean norm along axes."""
    order, axes, keep = [*node.args[1:], None, None, None][:3]
    if order not in (None, 2, 2.0) or axes is None:
        raise NotImplementedError("norms are exported for order 2 and given axes only")
    value = t.full(node.args[0])
    places = t.integers(*(axis % len(value.shape) for axis in axes))
    return t.emit("ReduceL2", [value.name, places], shape_of(node), keepdims=int(bool(keep)))


def softmax(op: str) -> Rule:
    def rule(t: Translator, node: Node) -> Value:
        value = t.full(node.args[0])
        return t.emit(op, [value.name], value.shape, axis=int(node.args[1]))

    return rule


def argmax(t: Translator, node: Node) -> Value:
    value = t.full(node.args[0])
    axis, keep = [*node.args[1:], None, None][:2]
    if axis is None:
        raise NotImplementedError("argmax needs an axis")
    return t.emit("ArgMax", [value.name], shape_of(node), axis=int(axis), keepdims=int(bool(keep)))


def cumulated(t: Translator, node: Node) -> Value:
    source: Any = node.args[0]
    value = t.cast(t.full(source), source.meta["val"].dtype, node.meta["val"].dtype)
    return t.emit("CumSum", [value.name, t.integers(int(node.args[1]))], value.shape)


def layer_norm(t: Translator, node: Node) -> list[Value]:
    """Over the last axis: the result, the mean and 1 / deviation."""
    source, normalized, weight, bias, epsilon = node.args
    value = t.full(source)
    if len(normalized) != 1 or weight is None:
        raise NotImplementedError("layer_norm is exported over the last axis and with a weight only")
    inputs = [value.name, t.full(weight).name] + ([t.full(bias).name] if bias is not None else [])
    names = t.writer.add("LayerNormalization", inputs, 3, axis=-1, epsilon=float(epsilon))
    short = (*value.shape[:-1], 1)
    return [Value(name, shape) for name, shape in zip(names, (value.shape, short, short), strict=True)]


# -- rows by number


def rows(t: Translator, node: Node) -> Value:
    """embedding(table, numbers) and index_select(x, axis, numbers)."""
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


def index(t: Translator, node: Node) -> Value:
    """x[numbers] with numbers for one axis, or for the first few."""
    value = t.full(node.args[0])
    indices: Any = node.args[1]
    given = [place for place, each in enumerate(indices) if each is not None]
    if len(given) == 1:
        numbers = indices[given[0]]
        if numbers.meta["val"].dtype == torch.bool:
            raise NotImplementedError("a mask as index gives a size that depends on data")
        return t.emit("Gather", [value.name, t.full(numbers).name], shape_of(node), axis=given[0])
    return t.emit("GatherND", [value.name, _numbers(t, indices)], shape_of(node))


def index_put(t: Translator, node: Node) -> Value:
    """x with rows replaced, or added to: numbers that occur twice add up."""
    indices: Any = node.args[1]
    base = t.full(node.args[0])
    numbers = _numbers(t, indices)
    rest = base.shape[len(indices) :]
    updates = t.broadcast(t.value(node.args[2]), (*joined(*(shape_of(each) for each in indices)), *rest))
    adds = {"reduction": "add"} if len(node.args) > 3 and node.args[3] else {}
    return t.emit("ScatterND", [base.name, numbers, updates.name], base.shape, **adds)


def rows_gradient(t: Translator, node: Node) -> Value:
    """The gradient of embedding's table: rows that were taken twice add up, rows never taken are zero."""
    gradient, numbers = t.full(node.args[0]), t.full(node.args[1])
    padding, scaled = [*node.args[3:], -1, False][:2]
    if padding != -1 or scaled:
        raise NotImplementedError("embedding is exported without padding_idx and scale_grad_by_freq only")
    zero = t.operand(0, node.meta["val"].dtype)
    table = t.emit("Expand", [zero.name, t.sizes(shape_of(node))], shape_of(node))
    places = t.reshape(numbers, (*numbers.shape, 1))
    return t.emit("ScatterND", [table.name, places.name, gradient.name], table.shape, reduction="add")


def gather(t: Translator, node: Node) -> Value:
    value, numbers = t.full(node.args[0]), t.full(node.args[2])
    return t.emit("GatherElements", [value.name, numbers.name], shape_of(node), axis=int(node.args[1]))


def scatter(*, adds: bool) -> Rule:
    def rule(t: Translator, node: Node) -> Value:
        base, numbers = t.full(node.args[0]), t.full(node.args[2])
        updates = t.broadcast(t.operand(node.args[3], node.meta["val"].dtype), numbers.shape)
        attributes: dict[str, Any] = {"axis": int(node.args[1])}
        if adds:
            attributes["reduction"] = "add"
        return t.emit("ScatterElements", [base.name, numbers.name, updates.name], base.shape, **attributes)

    return rule


def _each(rule: Rule, *targets: Any) -> dict[Callable[..., Any], Rule]:
    return dict.fromkeys(targets, rule)


RULES: dict[Any, Rule] = {
    **_each(same, aten.alias.default, aten.clone.default, aten.detach.default, aten.lift_fresh_copy.default),
    **_each(same, aten.expand.default),
    **_each(arithmetic("Add"), aten.add.Tensor, aten.add.Scalar),
    **_each(arithmetic("Sub"), aten.sub.Tensor, aten.sub.Scalar),
    **_each(arithmetic("Mul"), aten.mul.Tensor, aten.mul.Scalar),
    **_each(arithmetic("Div"), aten.div.Tensor, aten.div.Scalar),
    **_each(arithmetic("Max"), aten.maximum.default),
    **_each(arithmetic("Min"), aten.minimum.default),
    **_each(reversed_subtraction, aten.rsub.Tensor, aten.rsub.Scalar),
    **_each(arithmetic("Or"), aten.bitwise_or.Tensor, aten.logical_or.default),
    **_each(arithmetic("And"), aten.bitwise_and.Tensor, aten.logical_and.default),
    **_each(unary("Not"), aten.bitwise_not.default, aten.logical_not.default),
    **_each(comparison("Equal"), aten.eq.Tensor, aten.eq.Scalar),
    **_each(comparison("Equal", negated=True), aten.ne.Tensor, aten.ne.Scalar),
    **_each(comparison("Less"), aten.lt.Tensor, aten.lt.Scalar),
    **_each(comparison("LessOrEqual"), aten.le.Tensor, aten.le.Scalar),
    **_each(comparison("Greater"), aten.gt.Tensor, aten.gt.Scalar),
    **_each(comparison("GreaterOrEqual"), aten.ge.Tensor, aten.ge.Scalar),
    **{
        getattr(aten, name).default: unary(op)
        for name, op in {
            "neg": "Neg", "exp": "Exp", "log": "Log", "tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu",
            "sqrt": "Sqrt", "abs": "Abs", "reciprocal": "Reciprocal", "erf": "Erf", "sign": "Sign", "sgn": "Sign",
        }.items()
    },
    aten.rsqrt.default: composed("Sqrt", "Reciprocal"),
    aten.pow.Tensor_Scalar: power,
    **_each(clamp, aten.clamp.default, aten.clamp_min.default, aten.hardtanh.default),
    aten.gelu.default: gelu,
    aten.where.self: where,
    aten._to_copy.default: converted,
    **_each(reshape, aten.view.default, aten._unsafe_view.default, aten.reshape.default),
    **_each(reshape, aten.squeeze.dims, aten.squeeze.dim, aten.squeeze.default),
    aten.unsqueeze.default: unsqueeze,
    aten.permute.default: permute,
    **_each(number_everywhere, aten.full.default, aten.full_like.default, aten.scalar_tensor.default),
    aten.arange.start_step: arange,
    aten.cat.default: concat,
    aten.split_with_sizes.default: split,
    operator.getitem: piece,
    aten.slice.Tensor: slice_,
    aten.slice_scatter.default: slice_scatter,
    aten.select.int: select,
    aten.constant_pad_nd.default: pad,
    aten.flip.default: flip,
    **_each(matrix_product, aten.mm.default, aten.addmm.default),
    aten.bmm.default: batched_product,
    **_each(reduction("ReduceSum"), aten.sum.dim_IntList, aten.sum.default),
    **_each(reduction("ReduceMean"), aten.mean.dim, aten.mean.default),
    aten.amax.default: reduction("ReduceMax"),
    aten.amin.default: reduction("ReduceMin"),
    aten.linalg_vector_norm.default: length,
    aten._softmax.default: softmax("Softmax"),
    aten._log_softmax.default: softmax("LogSoftmax"),
    aten.argmax.default: argmax,
    aten.cumsum.default: cumulated,
    aten.native_layer_norm.default: layer_norm,
    **_each(rows, aten.embedding.default, aten.index_select.default),
    aten.embedding_dense_backward.default: rows_gradient,
    aten.index.Tensor: index,
    **_each(index_put, aten.index_put.default, aten._unsafe_index_put.default),
    aten.gather.default: gather,
    aten.scatter_add.default: scatter(adds=True),
    **_each(scatter(adds=False), aten.scatter.src, aten.scatter.value),
}  # fmt: skip
