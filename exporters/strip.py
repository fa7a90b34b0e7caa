"""Make a graph small and the same at every export: no metadata, no documentation, no shapes of inner values."""

from __future__ import annotations

import onnx


def strip(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop what does not compute, and parameter inputs that no node reads. Works in place; returns `model`."""
    graph = model.graph
    model.doc_string = ""
    graph.doc_string = ""
    graph.name = "main"
    for owner in (model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        del owner.metadata_props[:]
        owner.doc_string = ""
    del graph.value_info[:]
    for place, node in enumerate(graph.node):
        node.name = f"{node.op_type}_{place}"
    read = {name for node in graph.node for name in node.input}
    kept = [each for each in graph.input if each.name in read or not each.name.startswith("p.")]
    del graph.input[:]
    graph.input.extend(kept)
    return model
