"""Operators that compute: element by element (broadcasts are deferred), matrix products, and along an axis."""

import math
from typing import Any

import numpy as np
import torch
from torch import fx

from exporters.translate import FxNode, Rule, Translator, Value, joined, shape_of


def same(t: Translator, node: FxNode) -> Value:
    """Copies and views that change nothing."""
    return t.value(node.args[0])


def arithmetic(op: str) -> Rule:
    """Elementwise, in the dtype of the result."""

    def rule(t: Translator, node: FxNode) -> Value:
        dtype = node.meta["val"].dtype
        operands = [t.operand(each, dtype) for each in node.args]
        if (factor := node.kwargs.get("alpha", 1)) != 1:
            operands[1] = multiply(t, operands[1], t.operand(factor, dtype))
        if all(each.constant is not None for each in operands):
            return t.constant(_compute(node, [each.constant for each in operands]))
        return t.emit(op, [each.name for each in operands], joined(*(each.shape for each in operands)))

    return rule


def _compute(node: fx.Node, operands: list[Any]) -> Any:
    """Evaluate elementwise operators of constants while translating."""
    target: Any = node.target
    result = target(*(torch.as_tensor(np.asarray(each)) for each in operands))
    return result.to(node.meta["val"].dtype).numpy()


def multiply(t: Translator, a: Value, b: Value) -> Value:
    return t.emit("Mul", [a.name, b.name], joined(a.shape, b.shape))


def reversed_subtraction(t: Translator, node: FxNode) -> Value:
    dtype = node.meta["val"].dtype
    a, b = (t.operand(each, dtype) for each in node.args)
    return t.emit("Sub", [b.name, a.name], joined(a.shape, b.shape))


def comparison(op: str, *, negated: bool = False) -> Rule:
    """Elementwise, in the operands' common dtype; the result is bool."""

    def rule(t: Translator, node: FxNode) -> Value:
        dtype = node.args[0].meta["val"].dtype
        other = node.args[1]
        if isinstance(other, fx.Node) and isinstance(other.meta["val"], torch.Tensor):
            dtype = torch.promote_types(dtype, other.meta["val"].dtype)
        operands = [t.operand(each, dtype) for each in node.args]
        shape = joined(*(each.shape for each in operands))
        if all(each.constant is not None for each in operands):
            a, b = (torch.as_tensor(np.asarray(each.constant)) for each in operands)
            return t.constant(getattr(torch, node.target.overloadpacket.__name__)(a, b).numpy())
        result = t.emit(op, [each.name for each in operands], shape)
        return t.emit("Not", [result.name], shape) if negated else result

    return rule


def unary(op: str, **attributes: Any) -> Rule:
    def rule(t: Translator, node: FxNode) -> Value:
        dtype = node.meta["val"].dtype
        value = t.operand(node.args[0], dtype)
        if value.constant is not None and len(node.args) == 1:
            return t.constant(_compute(node, [value.constant]))
        return t.emit(op, [value.name], value.shape, **attributes)

    return rule


def composed(*ops: str) -> Rule:
    """Unary operators in sequence."""

    def rule(t: Translator, node: FxNode) -> Value:
        value = t.operand(node.args[0], node.meta["val"].dtype)
        for op in ops:
            value = t.emit(op, [value.name], value.shape)
        return value

    return rule


def power(t: Translator, node: FxNode) -> Value:
    dtype = node.meta["val"].dtype
    value, exponent = t.operand(node.args[0], dtype), node.args[1]
    if exponent == 2:
        return multiply(t, value, value)
    if exponent == 0.5:
        return t.emit("Sqrt", [value.name], value.shape)
    other = t.operand(exponent, dtype)
    return t.emit("Pow", [value.name, other.name], joined(value.shape, other.shape))


def clamp(t: Translator, node: FxNode) -> Value:
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


def gelu(t: Translator, node: FxNode) -> Value:
    """x (1 + erf(x / sqrt 2)) / 2."""
    if node.kwargs.get("approximate", "none") != "none":
        raise NotImplementedError("gelu is exported in its exact form only")
    x = t.operand(node.args[0], torch.float32)
    scaled = multiply(t, x, t.operand(1 / math.sqrt(2), torch.float32))
    erf = t.emit("Erf", [scaled.name], scaled.shape)
    plus = t.emit("Add", [erf.name, t.operand(1.0, torch.float32).name], erf.shape)
    return multiply(t, multiply(t, x, plus), t.operand(0.5, torch.float32))


def where(t: Translator, node: FxNode) -> Value:
    dtype = node.meta["val"].dtype
    condition = t.operand(node.args[0], torch.bool)
    chosen = [t.operand(each, dtype) for each in node.args[1:]]
    shape = joined(condition.shape, *(each.shape for each in chosen))
    return t.emit("Where", [condition.name, *(each.name for each in chosen)], shape)


def converted(t: Translator, node: FxNode) -> Value:
    source: Any = node.args[0]
    return t.cast(t.value(source), source.meta["val"].dtype, node.meta["val"].dtype)


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
        product = t.emit("MatMul", [a4.name, b4.name], (*a4.shape[:3], b4.shape[3]))
        return t.reshape(product, shape)
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
