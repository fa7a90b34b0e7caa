"""A function of parameters and inputs as an ONNX graph: traced once, written operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
from torch import Tensor, fx

from exporters.graph_writer import GraphWriter, value_info
from exporters.operators import RULES
from exporters.signature import GraphSpec
from exporters.trace import trace
from exporters.translate import Translator, numpy_type, shape_of, translate


def write_graph(
    compute: Callable[..., Any], values: Mapping[str, Tensor], spec: GraphSpec, outputs: Sequence[str]
) -> onnx.ModelProto:
    """`compute(*parameters, *inputs)`, a tuple named by `outputs`. Parameters have fixed shapes; those that no node
    reads are no inputs."""
    tensors = [*values.values(), *spec.example()]
    axes = [*(tuple(each.shape) for each in values.values()), *(each.axes for each in spec.inputs)]
    parameters = [f"p.{name}" for name in values]
    names = [*parameters, *spec.input_names]
    traced = trace(compute, tensors, axes)
    writer = GraphWriter()
    results = translate(traced.graph, Translator(writer, _places(traced.axes, names, axes)), names, RULES)
    inputs = [
        value_info(name, numpy_type(each.dtype), shape) for name, each, shape in zip(names, tensors, axes, strict=True)
    ]
    made = [
        value_info(name, numpy_type(node.meta["val"].dtype), [_axis(size, traced.axes) for size in shape_of(node)])
        for name, node in zip(outputs, _outputs(traced.graph), strict=True)
    ]
    return writer.finish(inputs, made, [each.name for each in results], frozenset(parameters))


def _places(
    symbols: Mapping[Any, str], names: Sequence[str], axes: Sequence[tuple[int | str, ...]]
) -> dict[Any, tuple[str, int]]:
    """For each symbol of a free axis, an input that has the axis, and where."""
    first = {
        axis: (name, place)
        for name, shape in reversed(list(zip(names, axes, strict=True)))
        for place, axis in enumerate(shape)
        if isinstance(axis, str)
    }
    return {symbol: first[axis] for symbol, axis in symbols.items()}


def _axis(size: Any, symbols: Mapping[Any, str]) -> int | str:
    """A size as ONNX writes it: a number, the name of a free axis, or an expression such as 4*batch."""
    return size if isinstance(size, int) else str(size.subs(dict(symbols)))


def _outputs(graph: fx.Graph) -> Sequence[Any]:
    (last,) = (node for node in graph.nodes if node.op == "output")
    given: Any = last.args[0]
    return list(given)
