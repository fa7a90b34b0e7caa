"""A GRU without gradients as ONNX's own operator."""

from __future__ import annotations

import numpy as np
import torch

from exporters.translate import FxNode, Translator, Value, shape_of


def gru(t: Translator, node: FxNode) -> Value:
    """models.layers.gru.last_state. ONNX stacks gates z, r, n where torch has r, z, n; its reset gate acts after the
    product with linear_before_reset; it wants time first. Steps after the longest row are not computed."""
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
    return t.emit("Where", [some.name, last.name, start.name], (batch, width))  # ONNX Runtime: zeros after no row


def _stacked(t: Translator, weight: Value, width: int) -> Value:
    """Gates r, z, n of [3 width, ...] as z, r, n: one copy at every run, as weights are inputs."""
    gates = (3, width, *weight.shape[1:])
    ordered = t.emit("Gather", [t.reshape(weight, gates).name, t.integers(1, 0, 2)], gates, axis=0)
    return t.reshape(ordered, weight.shape)
