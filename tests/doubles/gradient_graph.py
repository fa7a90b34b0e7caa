"""Hand-made gradient graphs with the names and shapes of the real ones, quick and without torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

CLICKS, CHANNELS, CANDIDATES = 50, 5, 5
_CONSTANTS: dict[str, np.ndarray] = {
    "zero": np.array([0], dtype=np.int64),
    "one": np.array([1], dtype=np.int64),
    "rows": np.array([0, 1], dtype=np.int64),
    "half": np.array(0.5, dtype=np.float32),
}


def recall_gradient_graph(dim: int, basis_size: int) -> bytes:
    """Outputs loss [], g.basis_keys [B, D], g.basis_values [B, D].

    The loss is half the squared distance of every basis value to the mean clicked article of the batch: dloss/dvalue_i
    is value_i - mean, and the keys have no gradient.
    """
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
        "clicks": ("batch", CLICKS, dim),
        "click_mask": ("batch", CLICKS),
        "membership": ("batch", CHANNELS, CLICKS),
        "quotas": ("batch", CHANNELS),
        "candidates": ("batch", CANDIDATES, dim),
    }
    outputs: dict[str, tuple[Any, ...]] = {
        "loss": (),
        "g.basis_keys": (basis_size, dim),
        "g.basis_values": (basis_size, dim),
    }
    return _model(nodes, inputs, outputs, _CONSTANTS)


def ranker_gradient_graph(dim: int, features: int) -> bytes:
    """Outputs loss [], g.beta [], g.feature_weights [F].

    The loss is half the squared distance of the weights to the mean features of the clicked articles; beta has no
    gradient.
    """
    nodes = [
        helper.make_node("Slice", ["features", "zero", "one", "one"], ["clicked"]),  # the second axis
        helper.make_node("ReduceMean", ["clicked", "rows"], ["mean"], keepdims=0),
        helper.make_node("Sub", ["p.feature_weights", "mean"], ["g.feature_weights"]),
        helper.make_node("Sub", ["p.beta", "p.beta"], ["g.beta"]),
        helper.make_node("Mul", ["g.feature_weights", "g.feature_weights"], ["squares"]),
        helper.make_node("ReduceSum", ["squares"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "half"], ["loss"]),
    ]
    inputs: dict[str, tuple[Any, ...]] = {
        "p.beta": (),
        "p.feature_weights": (features,),
        "clicks": ("batch", CLICKS, dim),
        "click_mask": ("batch", CLICKS),
        "candidates": ("batch", CANDIDATES, dim),
        "features": ("batch", CANDIDATES, features),
    }
    outputs: dict[str, tuple[Any, ...]] = {"loss": (), "g.beta": (), "g.feature_weights": (features,)}
    return _model(nodes, inputs, outputs, _CONSTANTS)


def _model(
    nodes: list[Any],
    inputs: dict[str, tuple[Any, ...]],
    outputs: dict[str, tuple[Any, ...]],
    constants: dict[str, np.ndarray],
) -> bytes:
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
