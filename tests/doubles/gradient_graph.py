"""A hand-made gradient graph with the names and shapes of the recall model's real one, quick and without torch.

Its loss is half the squared distance of every basis value to the mean clicked news of the batch: dloss/dvalue_i is
value_i - mean, and the keys have no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

CLICKS, CHANNELS, CANDIDATES = 50, 5, 5


def recall_gradient_graph(dim: int, basis_size: int) -> bytes:
    """Outputs loss [], g.basis_keys [B, D], g.basis_values [B, D]."""
    nodes = [
        helper.make_node("Slice", ["candidates", "zero", "one", "one"], ["clicked"]),  # the second axis,
        helper.make_node("ReduceMean", ["clicked", "rows"], ["mean"], keepdims=0),
        helper.make_node("Sub", ["p.basis_values", "mean"], ["g.basis_values"]),
        helper.make_node("Sub", ["p.basis_keys", "p.basis_keys"], ["g.basis_keys"]),
        helper.make_node("Mul", ["g.basis_values", "g.basis_values"], ["squares"]),
        helper.make_node("ReduceSum", ["squares"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "half"], ["loss"]),
    ]
    inputs: dict[str, tuple[Any, ...]] = {
        "p.basis_keys": (basis_size, dim),
        "p.basis_values": (basis_size, dim),
        "clicks": ("b", CLICKS, dim),
        "click_mask": ("b", CLICKS),
        "membership": ("b", CHANNELS, CLICKS),
        "quotas": ("b", CHANNELS),
        "candidates": ("b", CANDIDATES, dim),
    }
    outputs: dict[str, tuple[Any, ...]] = {
        "loss": (),
        "g.basis_keys": (basis_size, dim),
        "g.basis_values": (basis_size, dim),
    }
    constants = {
        "zero": np.array([0], dtype=np.int64),
        "one": np.array([1], dtype=np.int64),
        "rows": np.array([0, 1], dtype=np.int64),
        "half": np.array(0.5, dtype=np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "gradient",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    checker.check_model(model)
    return bytes(model.SerializeToString())
