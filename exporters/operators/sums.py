"""Matrix products and operators along an axis: sums, softmax, norms."""

from __future__ import annotations

from typing import Any

from exporters.translate import FxNode, Rule, Translator, Value, shape_of


def matrix_product(t: Translator, node: FxNode) -> Value:
    """mm and addmm; Gemm transposes the factors."""
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


def batched_product(t: Translator, node: FxNode) -> Value:
    """bmm. torch folds [b, h, m, k] to [b h, m, k] before it; ONNX's MatMul takes the four axes directly."""
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


def reduction(op: str) -> Rule:
    def rule(t: Translator, node: FxNode) -> Value:
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


def length(t: Translator, node: FxNode) -> Value:
    """The Euclidean norm along axes."""
    order, axes, keep = [*node.args[1:], None, None, None][:3]
    if order not in (None, 2, 2.0) or axes is None:
        raise NotImplementedError("norms are exported for order 2 and given axes only")
    value = t.full(node.args[0])
    places = t.integers(*(axis % len(value.shape) for axis in axes))
    return t.emit("ReduceL2", [value.name, places], shape_of(node), keepdims=int(bool(keep)))


def softmax(op: str) -> Rule:
    def rule(t: Translator, node: FxNode) -> Value:
        value = t.full(node.args[0])
        return t.emit(op, [value.name], value.shape, axis=int(node.args[1]))

    return rule


def argmax(t: Translator, node: FxNode) -> Value:
    value = t.full(node.args[0])
    axis, keep = [*node.args[1:], None, None][:2]
    if axis is None:
        raise NotImplementedError("argmax needs an axis")
    return t.emit("ArgMax", [value.name], shape_of(node), axis=int(axis), keepdims=int(bool(keep)))


def cumulated(t: Translator, node: FxNode) -> Value:
    source: Any = node.args[0]
    value = t.cast(t.full(source), source.meta["val"].dtype, node.meta["val"].dtype)
    return t.emit("CumSum", [value.name, t.integers(int(node.args[1]))], value.shape)


def layer_norm(t: Translator, node: FxNode) -> list[Value]:
    """Over the last axis: the result, the mean and 1 / deviation."""
    source, normalized, weight, bias, epsilon = node.args
    value = t.full(source)
    if len(normalized) != 1 or weight is None:
        raise NotImplementedError("layer_norm is exported over the last axis and with a weight only")
    inputs = [value.name, t.full(weight).name] + ([t.full(bias).name] if bias is not None else [])
    names = t.writer.add("LayerNormalization", inputs, 3, axis=-1, epsilon=float(epsilon))
    short = (*value.shape[:-1], 1)
    return [Value(name, shape) for name, shape in zip(names, (value.shape, short, short), strict=True)]
