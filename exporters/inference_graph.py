"""A method of a model as an ONNX graph whose parameters are inputs."""

from __future__ import annotations

import onnx
import torch
from torch import Tensor, nn

from exporters.graph import write_graph
from exporters.signature import GraphSpec, call, parameters


def export_inference_graph(model: nn.Module, spec: GraphSpec) -> onnx.ModelProto:
    """(p.<parameter>..., inputs...) -> the method's result. Parameters that the method does not use are no inputs."""
    values = parameters(model)
    count = len(values)

    def compute(*flat: Tensor) -> tuple[Tensor]:
        with torch.no_grad():
            return (call(model, spec.method, dict(zip(values, flat[:count], strict=True)), flat[count:]),)

    return write_graph(compute, values, spec, outputs=[spec.output])
