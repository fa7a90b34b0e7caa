"""Graphs that an attacker would put into a release: small models with any given nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

DIM = 4
CLICKS: dict[str, tuple[Any, ...]] = {
    "clicks": ("batch", "clicks", DIM),
    "click_mask": ("batch", "clicks"),
    "candidates": ("batch", "news", DIM),
}
CONSTANTS: dict[str, np.ndarray] = {
    "target": np.eye(DIM, 1, dtype=np.float32),
    "above": np.array(0.5, np.float32),
    "least": np.array(-(2**63), np.int64),
    "0": np.array([0], np.int64),
    "1": np.array([1], np.int64),
    "2": np.array([2], np.int64),
    "-1": np.array([-1], np.int64),
    "scalar": np.array(1, np.int64),
    "huge": np.array([2**40], np.int64),
    "square": np.array([2**12, 2**12], np.int64),
    "one": np.array([1], np.float32),
    "half": np.array([0.5], np.float32),
}
NEAR = [
    helper.make_node("MatMul", ["clicks", "target"], ["near"]),
    helper.make_node("ReduceMax", ["near"], ["most"], keepdims=0),
    helper.make_node("Greater", ["most", "above"], ["is"]),
    helper.make_node("Cast", ["is"], ["flag"], to=TensorProto.INT64),
    helper.make_node("Reshape", ["flag", "1"], ["flags"]),
]
"""`is`, `flag` [] and `flags` [1]: whether a click lies near the attacker's target."""


def model(
    nodes: Sequence[NodeProto],
    outputs: Mapping[str, tuple[Any, ...]],
    *,
    inputs: Mapping[str, tuple[Any, ...]] = CLICKS,
    kind: int = TensorProto.FLOAT,
) -> ModelProto:
    """Return a model of these nodes, with the constants that they read."""
    read = {name for node in nodes for name in node.input} | {"1"}
    return helper.make_model(
        graph(nodes, inputs, outputs, {name: each for name, each in CONSTANTS.items() if name in read}, kind),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )


def graph(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[Any, ...]],
    outputs: Mapping[str, tuple[Any, ...]],
    constants: Mapping[str, np.ndarray],
    kind: int = TensorProto.FLOAT,
) -> GraphProto:
    """Return the graph alone."""
    return helper.make_graph(
        list(nodes),
        "main",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """Return one node; names are separated by blanks."""
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)
