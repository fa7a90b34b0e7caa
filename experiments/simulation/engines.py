"""Gradient engines: ONNX Runtime as on the devices, torch as its oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn

from device_app.training.gradients import GRADIENT_PREFIX, Batch, GradientFn, Gradients, Params
from exporters.model_graphs import export_gradient_graph
from exporters.signature import GraphInput, GraphSpec
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
