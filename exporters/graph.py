"""Writes functions of parameters and inputs as ONNX graphs.

A function is traced once and translated operator by operator. A model's method becomes an ONNX graph whose parameters
are inputs; its loss with all gradients becomes another. Devices train with the second, without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
import torch
from torch import Tensor, fx, nn

from exporters.operators import RULES
from exporters.signature import GraphSpec, call, parameters, trained
from exporters.trace import trace
from exporters.translate import GraphWriter, Translator, numpy_type, shape_of, translate, value_info


def write_graph(
    compute: Callable[..., Any], values: Mapping[str, Tensor], spec: GraphSpec, outputs: Sequence[str]
) -> onnx.ModelProto:
    """Return the graph of `compute(*parameters, *inputs)`, a tuple named by `outputs`.

    Parameters have fixed shapes. Parameters that no node reads do not become inputs.
    """
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
    """For each symbol of a free axis, return an input that has the axis, and its position there."""
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


def export_inference_graph(model: nn.Module, spec: GraphSpec) -> onnx.ModelProto:
    """(p.<parameter>..., inputs...) -> the method's result.

    Parameters that the method does not use are left out.
    """
    values = parameters(model)
    count = len(values)

    def compute(*flat: Tensor) -> tuple[Tensor]:
        with torch.no_grad():
            return (call(model, spec.method, dict(zip(values, flat[:count], strict=True)), flat[count:]),)

    return write_graph(compute, values, spec, outputs=[spec.output])


def export_gradient_graph(model: nn.Module, spec: GraphSpec) -> onnx.ModelProto:
    """(p.<parameter>..., inputs...) -> (loss, g.<trained parameter>..., g.<input of spec.wrt>...).

    This does not detect wrong gradients; exporters.parity does.
    """
    values = parameters(model)
    names = list(values)

    def compute(*flat: Tensor) -> tuple[Tensor, ...]:
        return loss_and_gradients(model, spec, dict(zip(names, flat, strict=False)), flat[len(names) :])

    return write_graph(
        compute, values, spec, outputs=[spec.output, *(f"g.{name}" for name in gradients_of(model, spec))]
    )


def gradients_of(model: nn.Module, spec: GraphSpec) -> list[str]:
    """Return the names of the graph's gradients, in order: trained parameters, then the inputs of `spec.wrt`."""
    return [*trained(model), *spec.wrt]


def loss_and_gradients(
    model: nn.Module, spec: GraphSpec, values: Mapping[str, Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Return the loss and torch's own gradients.

    The gradient of a parameter that the loss does not read is zero.
    """
    given = {**values, **dict(zip(spec.input_names, inputs, strict=True))}
    leaves = {name: given[name].detach().requires_grad_(True) for name in gradients_of(model, spec)}
    with torch.enable_grad():
        weights = {name: leaves.get(name, each) for name, each in values.items()}
        fed = [leaves[name] if name in spec.wrt else given[name] for name in spec.input_names]
        loss = call(model, spec.method, weights, fed)
        gradients = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
    return (loss.detach(), *gradients)
