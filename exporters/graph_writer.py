"""Nodes and constants of an ONNX graph being written: short names, nothing twice, nothing unread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OPSET = 18  # onnxruntime and onnxruntime-web run it natively
IR_VERSION = 10
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class GraphWriter:
    """Collects nodes; equal nodes and equal constants are written once."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[Any, ...], str] = {}
        self._tensors: dict[str, onnx.TensorProto] = {}
        self._written: dict[tuple[Any, ...], list[str]] = {}
        self._names = 0

    def add(self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """One node; returns the names of its outputs."""
        key = (op, tuple(inputs), outputs, tuple(sorted((name, repr(value)) for name, value in attributes.items())))
        if key not in self._written:
            names = [self._name() for _ in range(outputs)]
            self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
            self._written[key] = names
        return self._written[key]

    def constant(self, value: NDArray[Any]) -> str:
        """A constant tensor; returns its name."""
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._constants:
            self._constants[key] = name = self._name()
            self._tensors[name] = numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
        return self._constants[key]

    def finish(
        self,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        results: Sequence[str],
        optional: frozenset[str],
    ) -> onnx.ModelProto:
        """The model whose `outputs` are the values `results`; of `optional` inputs only those that are read."""
        self._name_outputs([each.name for each in outputs], results, {each.name for each in inputs})
        names = {each.name for each in outputs}
        nodes = _needed(self.nodes, names)
        read = {name for node in nodes for name in node.input}
        graph = helper.make_graph(
            nodes,
            "main",
            [each for each in inputs if each.name in read or each.name not in optional],
            list(outputs),
            [tensor for name, tensor in self._tensors.items() if name in read],
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)

    def _name(self) -> str:
        self._names += 1
        rest, name = self._names, ""
        while rest:
            rest, digit = divmod(rest, len(DIGITS))
            name = DIGITS[digit] + name
        return "_" + name

    def _name_outputs(self, names: Sequence[str], results: Sequence[str], inputs: set[str]) -> None:
        ours: dict[str, str] = {}
        for name, result in zip(names, results, strict=True):
            if result in ours or result in inputs or result in self._tensors:
                self.nodes.append(helper.make_node("Identity", [result], [name]))
            else:
                ours[result] = name
        for node in self.nodes:
            node.input[:] = [ours.get(each, each) for each in node.input]
            node.output[:] = [ours.get(each, each) for each in node.output]


def _needed(nodes: Sequence[onnx.NodeProto], results: set[str]) -> list[onnx.NodeProto]:
    """The nodes that the results come from, in order."""
    wanted, kept = set(results), []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(name for name in node.input if name)
    return kept[::-1]


def tensor_type(dtype: Any) -> int:
    """ONNX's number of a numpy dtype."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def value_info(name: str, dtype: Any, axes: Sequence[int | str]) -> onnx.ValueInfoProto:
    """An input or output; an axis that is a name is free."""
    return helper.make_tensor_value_info(name, tensor_type(dtype), list(axes))


def bytes_of(model: onnx.ModelProto) -> bytes:
    """The same model, the same bytes."""
    return bytes(model.SerializeToString(deterministic=True))
