"""Training engines for any model: the device's own on a freshly exported graph, and torch as its oracle."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from device_app.training.gradients import GRADIENT_PREFIX, Batch, Gradients, OnnxGradients, Params
from experiments.simulation.clients import gradient_graph
from exporters.signature import GraphInput, call


def onnx_engine(model: nn.Module, inputs: tuple[GraphInput, ...]) -> OnnxGradients:
    """The device's own engine, one thread, on the model's gradient graph."""
    return OnnxGradients(gradient_graph(model, inputs))


class TorchEngine:
    """The oracle: autograd through the model's `loss`, in the dtype of the parameters."""

    def __init__(self, model: nn.Module, inputs: tuple[GraphInput, ...]) -> None:
        self._model = model
        self._names = [each.name for each in inputs]

    def __call__(self, params: Params, batch: Batch) -> Gradients:
        """Gradients of the batch's mean loss."""
        leaves = {name: torch.from_numpy(np.asarray(value)).requires_grad_(True) for name, value in params.items()}
        loss = call(self._model, "loss", leaves, [torch.from_numpy(batch[name]) for name in self._names])
        found = torch.autograd.grad(loss, list(leaves.values()))
        tensors = {GRADIENT_PREFIX + name: each.numpy() for name, each in zip(leaves, found, strict=True)}
        return Gradients(float(loss.detach()), tensors)
