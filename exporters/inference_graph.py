"""A method of a model as an ONNX graph whose parameters are inputs."""

from __future__ import annotations

import onnx
import torch
from torch import Tensor, nn

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
    with without_known_noise():
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
    proto = strip(exported.model_proto)
    if [each.name for each in proto.graph.output] != outputs:
        raise RuntimeError(f"graph {spec.purpose} has outputs {[o.name for o in proto.graph.output]}, not {outputs}")
    return proto
