"""Gradient engines: ONNX Runtime as on the devices, torch as its oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from device_app.training.gradients import GRADIENT_PREFIX, Batch, GradientFn, Gradients, OnnxGradients, Params
from exporters.model_graphs import export_gradient_graph
from exporters.signature import GraphInput, GraphSpec, call
from models.shapes import CLICKS, NEGATIVES


def ranker_inputs(dim: int, features: int = 0, negatives: int = NEGATIVES) -> tuple[GraphInput, ...]:
    """What a ranker's loss takes: clicks, mask, candidates, and features where it has some."""
    found = (
        GraphInput("clicks", ("batch", CLICKS, dim)),
        GraphInput("click_mask", ("batch", CLICKS)),
        GraphInput("candidates", ("batch", 1 + negatives, dim)),
    )
    return (*found, GraphInput("features", ("batch", 1 + negatives, features))) if features else found


def gradient_graph(model: nn.Module, inputs: tuple[GraphInput, ...]) -> bytes:
    """The model's gradient graph as a release would carry it, not compared with torch here."""
    spec = GraphSpec("gradient", "loss", inputs, "loss", with_gradients=True)
    graph: bytes = export_gradient_graph(model, spec).SerializeToString(deterministic=True)
    return graph


def onnx_engine(model: nn.Module, inputs: tuple[GraphInput, ...]) -> OnnxGradients:
    """The device's own engine, one thread, on the model's gradient graph."""
    return OnnxGradients(gradient_graph(model, inputs))


@dataclass(frozen=True)
class SharedGradients:
    """An engine that leaves private parameters where they are: a reader's own value is not trained for everybody."""

    engine: GradientFn
    private: tuple[str, ...]

    def __call__(self, params: Params, batch: Batch) -> Gradients:
        """Gradients of the batch's mean loss, zero for private parameters."""
        found = self.engine(params, batch)
        own = {GRADIENT_PREFIX + name for name in self.private}
        return Gradients(
            found.loss, {name: np.zeros_like(each) if name in own else each for name, each in found.tensors.items()}
        )


class TorchGradients:
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
