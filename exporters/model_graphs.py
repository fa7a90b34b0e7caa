"""A model's method as an ONNX graph whose parameters are inputs, and its loss with all gradients as another.

The device trains with the second, without torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
import torch
from torch import Tensor, nn

from exporters.graph import write_graph
from exporters.signature import GraphSpec, call, parameters, trained


def export_inference_graph(model: nn.Module, spec: GraphSpec) -> onnx.ModelProto:
    """(p.<parameter>..., inputs...) -> the method's result. Parameters that the method does not use are no inputs."""
    values = parameters(model)
    count = len(values)

    def compute(*flat: Tensor) -> tuple[Tensor]:
        with torch.no_grad():
            return (call(model, spec.method, dict(zip(values, flat[:count], strict=True)), flat[count:]),)

    return write_graph(compute, values, spec, outputs=[spec.output])


def export_gradient_graph(model: nn.Module, spec: GraphSpec) -> onnx.ModelProto:
    """(p.<parameter>..., inputs...) -> (loss, g.<trained parameter>..., g.<input of spec.wrt>...).

    Nothing here notices a wrong gradient; exporters.parity does.
    """
    values = parameters(model)
    names = list(values)

    def compute(*flat: Tensor) -> tuple[Tensor, ...]:
        return loss_and_gradients(model, spec, dict(zip(names, flat, strict=False)), flat[len(names) :])

    return write_graph(
        compute, values, spec, outputs=[spec.output, *(f"g.{name}" for name in gradients_of(model, spec))]
    )


def gradients_of(model: nn.Module, spec: GraphSpec) -> list[str]:
    """What the graph gives gradients of, in order: trained parameters, then the inputs of `spec.wrt`."""
    return [*trained(model), *spec.wrt]


def loss_and_gradients(
    model: nn.Module, spec: GraphSpec, values: Mapping[str, Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The loss and torch's own gradients; a parameter that the loss does not read has the gradient zero."""
    given = {**values, **dict(zip(spec.input_names, inputs, strict=True))}
    leaves = {name: given[name].detach().requires_grad_(True) for name in gradients_of(model, spec)}
    with torch.enable_grad():
        weights = {name: leaves.get(name, each) for name, each in values.items()}
        fed = [leaves[name] if name in spec.wrt else given[name] for name in spec.input_names]
        loss = call(model, spec.method, weights, fed)
        gradients = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
    return (loss.detach(), *gradients)
