"""Writes functions of parameters and inputs as ONNX graphs.

A function is traced once and translated operator by operator. A model's method becomes an ONNX graph whose parameters
are inputs; its loss with all gradients becomes another. Devices train with the second, without torch.

A trace is a graph of plain operators with named free axes, the same for values and gradients: make_fx records while
autograd runs, so the backward pass is operators too.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import onnx
import torch
from torch import Tensor, fx, nn
from torch._decomp import core_aten_decompositions
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo import config as dynamo_config
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from exporters.operators import RULES
from exporters.signature import GraphSpec, call, parameters, trained
from exporters.translate import GraphWriter, Translator, numpy_type, shape_of, translate, value_info

# Operators that ONNX has itself and torch would decompose.
KEPT_WHOLE = (torch.ops.aten.split_with_sizes.default, torch.ops.aten.embedding_dense_backward.default)


@dataclass(frozen=True)
class Trace:
    """graph: operators with their shapes (node.meta["val"]); axes: torch's symbol of a size -> the axis's name."""

    graph: fx.Graph
    axes: Mapping[Any, str]


def trace(function: Callable[..., Any], tensors: Sequence[Tensor], axes: Sequence[tuple[int | str, ...]]) -> Trace:
    """Trace `function(*tensors)`; `axes` names the free axes of each tensor, whose sizes in `tensors` are examples.

    Axes with one name must have one size, different names different sizes, and no size may be 1. Raises RuntimeError if
    the function read the size of a free axis in a way that is only right for the example.
    """
    environment = ShapeEnv()
    with quick_tracing():
        mode = FakeTensorMode(shape_env=environment)
    fakes = [_fake(mode, place, each, free) for place, (each, free) in enumerate(zip(tensors, axes, strict=True))]
    names: dict[Any, str] = {}
    for fake, free in zip(fakes, axes, strict=True):
        sizes: Sequence[Any] = fake.shape
        names |= {size.node.expr: name for size, name in zip(sizes, free, strict=True) if isinstance(name, str)}
    with enable_python_dispatcher(), mode:
        traced = make_fx(function, tracing_mode="real", decomposition_table=_decompositions())(*fakes)
    if environment.replacements or len(set(names.values())) != len(names):
        raise RuntimeError(f"the trace is valid for one size of a free axis only: {environment.replacements or names}")
    traced.graph.eliminate_dead_code()
    return Trace(traced.graph, names)


@cache
def _decompositions() -> dict[Any, Any]:
    """Return torch's operator decompositions; built once, because it takes a tenth of a second.

    Without them, losses with mean reduction export gradients that are wrong by a factor of the batch size.
    """
    known: Mapping[Any, Any] = core_aten_decompositions()
    return {op: known[op] for op in known if op not in KEPT_WHOLE}


def _fake(mode: FakeTensorMode, place: int, example: Tensor, axes: tuple[int | str, ...]) -> Tensor:
    # DUCK: free axes of one example size get one symbol, as axes of one name should.
    sizes = [DimDynamic.DUCK if isinstance(axis, str) else DimDynamic.STATIC for axis in axes]
    context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
    return mode.from_tensor(example, source=ConstantSource(f"input{place}"), symbolic_context=context)


def quick_tracing() -> AbstractContextManager[None]:
    """Turn off torch's cache of traced shapes, which costs more than it saves with free axes."""
    return cast(AbstractContextManager[None], dynamo_config.patch(fake_tensor_cache_enabled=False))


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
