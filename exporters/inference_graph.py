"""A method of a model as an ONNX graph whose parameters are inputs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import cast

import onnx
import torch
from torch import Tensor, nn
from torch._dynamo import config as dynamo_config

from exporters.known_noise import without_known_noise
from exporters.signature import OPSET, Flat, GraphSpec, call, parameters
from exporters.strip import strip


def export_inference_graph(model: nn.Module, spec: GraphSpec) -> onnx.ModelProto:
    """(p.<parameter>..., inputs...) -> the method's result. Parameters that the method does not use are no inputs."""
    values = parameters(model)
    count = len(values)

    def compute(*flat: Tensor) -> Tensor:
        return call(model, spec.method, dict(zip(values, flat[:count], strict=True)), flat[count:])

    return write_graph(compute, values, spec, outputs=[spec.output])


def write_graph(compute: object, values: dict[str, Tensor], spec: GraphSpec, outputs: list[str]) -> onnx.ModelProto:
    """Export `compute(*parameters, *inputs)` with parameters of fixed shape and the free axes of `spec`."""
    flat = (*values.values(), *spec.example())
    shapes = (tuple([{} for _ in values] + spec.free_axes()),)
    with without_known_noise(), quick_tracing():
        program = torch.export.export(Flat(compute), flat, strict=False, dynamic_shapes=shapes)
        exported = torch.onnx.export(
            program,
            dynamo=True,
            opset_version=OPSET,
            verbose=False,
            input_names=[f"p.{name}" for name in values] + spec.input_names,
            output_names=outputs,
        )
    if exported is None:
        raise RuntimeError(f"torch wrote no graph for {spec.purpose}")
    proto = name_axes(strip(exported.model_proto), spec)
    if [each.name for each in proto.graph.output] != outputs:
        raise RuntimeError(f"graph {spec.purpose} has outputs {[o.name for o in proto.graph.output]}, not {outputs}")
    return proto


def quick_tracing() -> AbstractContextManager[None]:
    """Turn off torch's cache of traced shapes: with free axes its upkeep is a third of an export's time."""
    return cast(AbstractContextManager[None], dynamo_config.patch(fake_tensor_cache_enabled=False))


def name_axes(proto: onnx.ModelProto, spec: GraphSpec) -> onnx.ModelProto:
    """Give free axes the names of `spec`; torch calls them s12 or s52, another time another number."""
    free = {each.name: each.axes for each in spec.inputs}
    ours: dict[str, str] = {}
    for value in proto.graph.input:
        dims = value.type.tensor_type.shape.dim
        for dim, axis in zip(dims, free.get(value.name, ()), strict=value.name in free):
            if isinstance(axis, str):
                ours[dim.dim_param] = axis
            elif dim.dim_param:
                raise RuntimeError(f"graph {spec.purpose}: an axis of {value.name} is free, not {axis}")
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = ours[dim.dim_param]
    return proto
