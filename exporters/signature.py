"""What goes into a graph: named inputs with fixed and free axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.func import functional_call

OPSET = 18  # 17 writes an invalid model; 18 runs natively and in the browser
FREE_AXIS_LIMIT = 65_536


@dataclass(frozen=True)
class GraphInput:
    """One input. An axis that is a name is free; axes of one name have one size."""

    name: str
    axes: tuple[int | str, ...]

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape with the free axes set to `sizes`."""
        return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in self.axes)


@dataclass(frozen=True)
class GraphSpec:
    """One graph of a model: which method, its inputs in call order, the name of its output, gradients or not."""

    purpose: str
    method: str
    inputs: tuple[GraphInput, ...]
    output: str
    with_gradients: bool = False

    @property
    def input_names(self) -> list[str]:
        return [each.name for each in self.inputs]

    def example(self) -> list[Tensor]:
        """Tensors to trace with. No free axis is 1: a trace with batch 1 fails at larger batches."""
        names = sorted({axis for each in self.inputs for axis in each.axes if isinstance(axis, str)})
        sizes = {name: 2 + place for place, name in enumerate(names)}
        draw = torch.Generator().manual_seed(0)
        return [torch.rand(each.shape(sizes), generator=draw) for each in self.inputs]

    def free_axes(self) -> list[dict[int, Any]]:
        """torch.export's description of the free axes, one dict for each input."""
        dims: dict[str, Any] = {}
        for each in self.inputs:
            for axis in each.axes:
                if isinstance(axis, str):
                    dims.setdefault(axis, Dim(axis, min=1, max=FREE_AXIS_LIMIT))
        return [{at: dims[axis] for at, axis in enumerate(each.axes) if isinstance(axis, str)} for each in self.inputs]


class Flat(nn.Module):
    """A function of a flat tuple of tensors as a module, so that torch.export sees parameters as inputs."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call = call

    def forward(self, *tensors: Tensor) -> Any:
        return self.call(*tensors)


class _Method(nn.Module):
    def __init__(self, model: nn.Module, method: str) -> None:
        super().__init__()
        self.model = model
        self.method = method

    def forward(self, *inputs: Tensor) -> Tensor:
        result: Tensor = getattr(self.model, self.method)(*inputs)
        return result


def parameters(model: nn.Module) -> dict[str, Tensor]:
    """Detached copies of the parameters by torch name; a model with buffers is refused, as they would be baked in."""
    if buffers := [name for name, _ in model.named_buffers()]:
        raise ValueError(f"buffers can't be graph inputs: {', '.join(buffers)}")
    return {name: each.detach().clone() for name, each in model.named_parameters()}


def call(model: nn.Module, method: str, values: Mapping[str, Tensor], inputs: Sequence[Tensor]) -> Tensor:
    """model.method(*inputs) with `values` as its parameters."""
    prefixed = {f"model.{name}": each for name, each in values.items()}
    result: Tensor = functional_call(_Method(model, method), prefixed, tuple(inputs))
    return result
