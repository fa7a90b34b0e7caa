"""A model's loss and the gradient of every parameter as one ONNX graph; the device trains with it, without torch."""

from __future__ import annotations

import onnx
import torch
from torch import Tensor, nn
from torch._decomp import core_aten_decompositions
from torch.fx.experimental.proxy_tensor import make_fx

from exporters.inference_graph import quick_tracing, write_graph
from exporters.signature import GraphSpec, call, parameters


def export_gradient_graph(model: nn.Module, spec: GraphSpec) -> onnx.ModelProto:
    """(p.<parameter>..., inputs...) -> (loss, g.<parameter>...).

    The gradient is traced to plain operators first: torch.export can't trace through autograd, and torch.func.grad
    would bake the batch size in. Nothing here notices a wrong gradient; exporters.parity does.
    """
    values = parameters(model)
    count = len(values)

    def loss_and_gradients(*flat: Tensor) -> tuple[Tensor, ...]:
        leaves = [each.detach().requires_grad_(True) for each in flat[:count]]
        with torch.enable_grad():
            loss = call(model, spec.method, dict(zip(values, leaves, strict=True)), flat[count:])
            gradients = torch.autograd.grad(loss, leaves)
        return (loss.detach(), *gradients)

    flat = (*values.values(), *spec.example())
    # Without the table, losses with mean reduction export gradients that are wrong by a factor of the batch size.
    table = dict(core_aten_decompositions())
    with quick_tracing():
        traced = make_fx(loss_and_gradients, tracing_mode="symbolic", decomposition_table=table)(*flat)
    return write_graph(traced, values, spec, outputs=[spec.output] + [f"g.{name}" for name in values])
