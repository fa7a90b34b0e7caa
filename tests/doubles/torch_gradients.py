"""torch as the training engine: the oracle for ONNX Runtime, and quicker to set up than exported graphs."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.func import functional_call

from device_app.training.gradients import Batch, Gradients, Params
from models.recall.basis import BasisRecall

INPUTS = ("clicks", "click_mask", "membership", "quotas", "candidates")


class ModelLoss(torch.nn.Module):
    """A model's loss as a module's output, so that `functional_call` can replace its parameters."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self.model.loss(*args, **kwargs)  # type: ignore[operator]
        return loss


class _Contexts(torch.nn.Module):
    def __init__(self, model: BasisRecall) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model.contexts(*inputs)


class TorchGradients:
    """GradientFn by autograd, and contexts under any weights."""

    def __init__(self, model: BasisRecall) -> None:
        self._loss, self._contexts = ModelLoss(model), _Contexts(model)

    def __call__(self, params: Params, batch: Batch) -> Gradients:
        leaves = {name: torch.from_numpy(value).requires_grad_(True) for name, value in params.items()}
        loss = self.loss(leaves, batch)
        gradients = torch.autograd.grad(loss, list(leaves.values()))
        tensors = {f"g.{name}": each.numpy() for name, each in zip(leaves, gradients, strict=True)}
        return Gradients(float(loss.detach()), tensors)

    def loss(self, leaves: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """The batch's mean loss as a tensor, for other ways of differentiating."""
        inputs = tuple(torch.from_numpy(np.ascontiguousarray(batch[name])) for name in INPUTS)
        found: torch.Tensor = functional_call(self._loss, {f"model.{n}": v for n, v in leaves.items()}, inputs)
        return found

    def contexts(
        self, params: Params, clicks: NDArray[np.float32], click_mask: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        weights = {f"model.{name}": torch.from_numpy(value) for name, value in params.items()}
        with torch.no_grad():
            inputs = (torch.from_numpy(clicks), torch.from_numpy(click_mask))
            found: NDArray[np.float32] = functional_call(self._contexts, weights, inputs).numpy()
        return found
