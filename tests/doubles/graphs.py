"""Hand-made ONNX graphs with the names and shapes of the real ones, built in milliseconds and without torch.

context: the clicks themselves; decompose: mean of a channel's contexts times the keys; score: softmax-weighted cosine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

from exporters.graph_cache import NAME_CHARS, CachedGraphs, GraphCache, entry_name, graphs_of, source_digest

if TYPE_CHECKING:
    from torch import nn

    from exporters.signature import GraphSpec

KEPT = Path(__file__).parents[2] / ".graphs_cache"
Shape = tuple[str | int, ...]
"""Axes of a tensor: a name if the length is free."""

CLICKS, CHANNELS = 50, 5


def context_graph(dim: int) -> bytes:
    """clicks [b, 50, D], click_mask [b, 50] -> contexts [b, 50, D]."""
    nodes = [
        helper.make_node("Unsqueeze", ["click_mask", "last"], ["wide"]),
        helper.make_node("Mul", ["clicks", "wide"], ["contexts"]),
    ]
    return _model(
        nodes,
        {"clicks": ("batch", CLICKS, dim), "click_mask": ("batch", CLICKS)},
        {"contexts": ("batch", CLICKS, dim)},
        {"last": np.array([2], dtype=np.int64)},
    )


def decompose_graph(dim: int, basis_size: int) -> bytes:
    """contexts [b, 50, D], membership [b, 5, 50], p.basis_keys [B, D] -> scores [b, 5, B]."""
    nodes = [
        helper.make_node("MatMul", ["membership", "contexts"], ["sums"]),
        helper.make_node("ReduceSum", ["membership", "last"], ["held"], keepdims=1),
        helper.make_node("Max", ["held", "one"], ["at_least_one"]),
        helper.make_node("Div", ["sums", "at_least_one"], ["means"]),
        helper.make_node("Transpose", ["p.basis_keys"], ["keys"], perm=[1, 0]),
        helper.make_node("MatMul", ["means", "keys"], ["scores"]),
    ]
    return _model(
        nodes,
        {
            "contexts": ("batch", CLICKS, dim),
            "membership": ("batch", CHANNELS, CLICKS),
            "p.basis_keys": (basis_size, dim),
        },
        {"scores": ("batch", CHANNELS, basis_size)},
        {"last": np.array([2], dtype=np.int64), "one": np.array(1.0, dtype=np.float32)},
    )


def cosine_score_graph(dim: int) -> bytes:
    """clicks, click_mask, candidates [b, R, D], p.beta [] -> scores [b, R]: sum_j softmax_j(beta cos_j) cos_j."""
    return _model(_cosine_nodes("scores"), _cosine_inputs(dim), {"scores": ("batch", "news")}, _COSINE_CONSTANTS)


def feature_score_graph(dim: int, features: int) -> bytes:
    """As `cosine_score_graph`, with features [b, R, F] and p.feature_weights [F] -> the cosine score + features @ w."""
    nodes = [
        *_cosine_nodes("fit"),
        helper.make_node("MatMul", ["features", "p.feature_weights"], ["known"]),
        helper.make_node("Add", ["fit", "known"], ["scores"]),
    ]
    inputs = {**_cosine_inputs(dim), "features": ("batch", "news", features), "p.feature_weights": (features,)}
    return _model(nodes, inputs, {"scores": ("batch", "news")}, _COSINE_CONSTANTS)


def _cosine_inputs(dim: int) -> dict[str, Shape]:
    return {
        "clicks": ("batch", CLICKS, dim),
        "click_mask": ("batch", CLICKS),
        "candidates": ("batch", "news", dim),
        "p.beta": (),
    }


_COSINE_CONSTANTS: dict[str, np.ndarray] = {
    "middle": np.array([1], dtype=np.int64),
    "last": np.array([2], dtype=np.int64),
    "one": np.array(1.0, dtype=np.float32),
    "tiny": np.array(1e-12, dtype=np.float32),
    "far": np.array(1e4, dtype=np.float32),
}


def _cosine_nodes(output: str) -> list[NodeProto]:
    return [
        *_unit("clicks"),
        *_unit("candidates"),
        helper.make_node("Transpose", ["unit_clicks"], ["columns"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["unit_candidates", "columns"], ["cosines"]),
        helper.make_node("Unsqueeze", ["click_mask", "middle"], ["row_mask"]),
        helper.make_node("Sub", ["one", "row_mask"], ["padding"]),
        helper.make_node("Mul", ["padding", "far"], ["shut"]),
        helper.make_node("Mul", ["cosines", "p.beta"], ["sharp"]),
        helper.make_node("Sub", ["sharp", "shut"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["attention"], axis=-1),
        helper.make_node("Mul", ["attention", "row_mask"], ["real"]),
        helper.make_node("Mul", ["real", "cosines"], ["parts"]),
        helper.make_node("ReduceSum", ["parts", "last"], [output], keepdims=0),
    ]


def _unit(name: str) -> list[NodeProto]:
    """Rows of length 1; a row of zeros stays one."""
    return [
        helper.make_node("ReduceL2", [name, "last"], [f"{name}_length"], keepdims=1),
        helper.make_node("Max", [f"{name}_length", "tiny"], [f"{name}_divisor"]),
        helper.make_node("Div", [name, f"{name}_divisor"], [f"unit_{name}"]),
    ]


def _model(
    nodes: list[NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Mapping[str, Shape],
    constants: Mapping[str, np.ndarray],
) -> bytes:
    def declared(tensors: Mapping[str, Shape]) -> list[ValueInfoProto]:
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in tensors.items()]

    graph = helper.make_graph(
        nodes,
        "hand_made",
        declared(inputs),
        declared(outputs),
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    checker.check_model(model)
    return bytes(model.SerializeToString())


def shared_graphs() -> GraphCache:
    """Return the checkout's cache of exported graphs, in a folder named by all that they depend on besides the model.

    So a graph is exported again only when the exporter, a model or a library changes; older graphs are then deleted.
    """
    folder = KEPT / source_digest()[:NAME_CHARS]
    if not folder.is_dir():
        for former in KEPT.glob("*"):
            shutil.rmtree(former, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
    return GraphCache(folder)


def kept_graph(model: nn.Module, spec: GraphSpec) -> bytes:
    """Return one graph of a model, as `exporters.graph` exports it, from the cache if it is there."""

    def make() -> bytes:
        from exporters.graph import export_gradient_graph, export_inference_graph
        from exporters.translate import bytes_of

        return bytes_of((export_gradient_graph if spec.with_gradients else export_inference_graph)(model, spec))

    return kept_export(make, *graphs_of(model, [spec]))


def kept_export(make: Callable[[], bytes], *parts: object) -> bytes:
    """Return what `make` exports, from the cache if it is there. parts: all that the graph depends on."""
    return shared_graphs().kept(entry_name("test", *parts), lambda: CachedGraphs({"graph": make()}, {})).graphs["graph"]


def kept_head_gradient(width: int, dimensions: int) -> bytes:
    """Return the graph that trains a news encoder's head, from the cache if it is there."""

    def make() -> bytes:
        from exporters.package import export_head_gradient

        return export_head_gradient(width, dimensions)

    return kept_export(make, "head", width, dimensions)
