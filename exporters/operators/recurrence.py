"""A GRU: ONNX's own operator without gradients, unrolled step by step with them."""

import numpy as np
import torch

from exporters.translate import FxNode, Shape, Translator, Value, joined, shape_of, sizes_of


def gru(t: Translator, node: FxNode) -> Value:
    """Translate models.layers.gru.last_state to ONNX's GRU.

    ONNX stacks gates z, r, n where torch has r, z, n; its reset gate acts after the product with linear_before_reset;
    it expects time first. Steps after the longest row are not computed.
    """
    x, lengths, *weights = (t.full(each) for each in node.args[:-1])
    start = t.value(node.args[-1])
    from_zero = start.constant is not None and not start.constant.any()
    batch, width = shape_of(node)
    input_, recurrent, bias = (_stacked(t, each, width) for each in weights)
    no_second_bias = t.writer.constant(np.zeros(3 * width, dtype=np.float32))
    biases = t.writer.add("Concat", [bias.name, no_second_bias], axis=0)[0]
    counts = t.cast(lengths, node.args[1].meta["val"].dtype, torch.int32)
    inputs = [
        t.permute(x, (1, 0, 2)).name,
        t.reshape(input_, (1, *input_.shape)).name,
        t.reshape(recurrent, (1, *recurrent.shape)).name,
        t.reshape(Value(biases, (6 * width,)), (1, 6 * width)).name,
        counts.name,
        *([] if from_zero else [t.reshape(t.broadcast(start, (batch, width)), (1, batch, width)).name]),
    ]
    last = Value(t.writer.add("GRU", inputs, 2, hidden_size=width, linear_before_reset=1)[1], (1, batch, width))
    last = t.reshape(last, (batch, width))
    if from_zero:
        return last
    some = t.emit("Greater", [t.reshape(counts, (batch, 1)).name, t.operand(0, torch.int32).name], (batch, 1))
    return t.emit("Where", [some.name, last.name, start.name], (batch, width))  # ONNX Runtime: zeros if empty


def step_by_step(t: Translator, node: FxNode) -> list[Value]:
    """Translate models.layers.gru.step_by_step: the nodes of all steps in sequence."""
    gates_in, new_in, mask, to_gates, to_product, state = (t.full(each) for each in node.args)
    steps = mask.shape[1]
    kept: list[list[Value]] = [[], [], [], []]  # states, gates, candidates, products
    for gate_in, candidate, real in zip(*(_split(t, each, steps) for each in (gates_in, new_in, mask)), strict=True):
        sums = t.emit("Gemm", [state.name, to_gates.name, gate_in.name], gate_in.shape, transB=1)
        gate = t.emit("Sigmoid", [sums.name], sums.shape)
        product = t.emit("Gemm", [state.name, to_product.name], state.shape, transB=1)
        reset, move = _split(t, gate, 2)
        before = _pair(t, "Add", candidate, _pair(t, "Mul", reset, product))
        new = t.emit("Tanh", [before.name], before.shape)
        for place, each in enumerate((state, gate, new, product)):
            kept[place].append(each)
        moved = _pair(t, "Mul", _pair(t, "Mul", real, move), _pair(t, "Sub", new, state))
        state = _pair(t, "Add", state, moved)
    shapes = [sizes_of(each) for each in node.meta["val"][1:]]
    return [state, *(_joined_rows(t, each, shape) for each, shape in zip(kept, shapes, strict=True))]


def back_step_by_step(t: Translator, node: FxNode) -> list[Value]:
    """Translate models.layers.gru.back_step_by_step in the same way."""
    gradient, through, past, weight = (t.full(each) for each in node.args)
    steps = past.shape[1] // weight.shape[1]
    arriving = []  # last step first
    for share, kept in zip(reversed(_split(t, through, steps)), reversed(_split(t, past, steps)), strict=True):
        arriving.append(gradient)
        beside = _pair(t, "Mul", gradient, kept)
        thrice = t.emit("Concat", [gradient.name] * 3, share.shape, axis=1)
        scaled = _pair(t, "Mul", thrice, share)
        gradient = t.emit("Gemm", [scaled.name, weight.name, beside.name], gradient.shape)
    return [_joined_rows(t, arriving[::-1], past.shape), gradient]


def _split(t: Translator, value: Value, count: int) -> list[Value]:
    """Cut [b, n] into this many equal pieces."""
    batch, width = value.shape
    size = width // count
    names = t.writer.add("Split", [value.name, t.integers(*[size] * count)], count, axis=1)
    return [Value(name, (batch, size)) for name in names]


def _joined_rows(t: Translator, pieces: list[Value], shape: Shape) -> Value:
    return t.emit("Concat", [each.name for each in pieces], shape, axis=1)


def _pair(t: Translator, op: str, a: Value, b: Value) -> Value:
    return t.emit(op, [a.name, b.name], joined(a.shape, b.shape))


def _stacked(t: Translator, weight: Value, width: int) -> Value:
    """Reorder gates r, z, n of [3 width, ...] to z, r, n; copied at every run, because weights are inputs."""
    gates = (3, width, *weight.shape[1:])
    ordered = t.emit("Gather", [t.reshape(weight, gates).name, t.integers(1, 0, 2)], gates, axis=0)
    return t.reshape(ordered, weight.shape)
