"""The inputs of a graph: names, with fixed and free axes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

MethodOrName = str | Callable[..., Tensor]  # a method's name, or a function of the model and the inputs


@dataclass(frozen=True)
class GraphInput:
    """One input. A string axis is free; axes with the same name have the same size.

    Numbers are float32; with `indexes` they are int64 row numbers, of a table with that many rows or of the free axis
    of that name.
    """

    name: str
    axes: tuple[int | str, ...]
    indexes: int | str | None = None

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape with the free axes set to `sizes`."""
        return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in self.axes)

    def rows(self, sizes: Mapping[str, int]) -> int:
        """Return the number of rows that an index chooses from."""
        if self.indexes is None:
            raise ValueError(f"input {self.name} holds float32, not row numbers")
        return sizes[self.indexes] if isinstance(self.indexes, str) else self.indexes


@dataclass(frozen=True)
class GraphSpec:
    """One graph of a model: its method, inputs in call order, the output's name, and whether it has gradients.

    `wrt` names inputs whose gradients are outputs `g.<input>`, in addition to those of the trained parameters.
    """

    purpose: str
    method: MethodOrName
    inputs: tuple[GraphInput, ...]
    output: str
    with_gradients: bool = False
    wrt: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        by_name = {each.name: each for each in self.inputs}
        if self.wrt and not self.with_gradients:
            raise ValueError(f"graph {self.purpose}: wrt needs with_gradients")
        for name in self.wrt:
            if name not in by_name or by_name[name].indexes is not None:
                raise ValueError(f"graph {self.purpose}: wrt names {name}, which is not a float32 input")
        for each in self.inputs:
            if isinstance(each.indexes, str) and each.indexes not in self.free_axes:
                raise ValueError(f"graph {self.purpose}: {each.name} indexes {each.indexes}, which is not a free axis")

    @property
    def input_names(self) -> list[str]:
        return [each.name for each in self.inputs]

    @property
    def free_axes(self) -> list[str]:
        """Return the names of the free axes, each once."""
        return sorted({axis for each in self.inputs for axis in each.axes if isinstance(axis, str)})

    def example(self) -> list[Tensor]:
        """Return tensors to trace with.

        Free axes with different names have different sizes, and none is 1: a trace at batch 1 fails at larger batches.
        """
        sizes = {name: 2 + place for place, name in enumerate(self.free_axes)}
        draw = torch.Generator().manual_seed(0)
        return [
            torch.rand(each.shape(sizes), generator=draw)
            if each.indexes is None
            else torch.randint(each.rows(sizes), each.shape(sizes), generator=draw)
            for each in self.inputs
        ]


class _Method(nn.Module):
    def __init__(self, model: nn.Module, method: MethodOrName) -> None:
        super().__init__()
        self.model = model
        self.method = method

    def forward(self, *inputs: Tensor) -> Tensor:
        result: Tensor
        if isinstance(self.method, str):
            result = getattr(self.model, self.method)(*inputs)
        else:
            result = self.method(self.model, *inputs)
        return result


def parameters(model: nn.Module) -> dict[str, Tensor]:
    """Return detached copies of the parameters by torch name.

    Raises ValueError for a model with buffers, because the graph would contain them as constants.
    """
    if buffers := [name for name, _ in model.named_buffers()]:
        raise ValueError(f"buffers can't be graph inputs: {', '.join(buffers)}")
    return {name: each.detach().clone() for name, each in model.named_parameters()}


def trained(model: nn.Module) -> list[str]:
    """Return the names of the parameters with gradients; frozen tables have none."""
    return [name for name, each in model.named_parameters() if each.requires_grad]


def call(model: nn.Module, method: MethodOrName, values: Mapping[str, Tensor], inputs: Sequence[Tensor]) -> Tensor:
    """model.method(*inputs) with `values` as its parameters."""
    prefixed = {f"model.{name}": each for name, each in values.items()}
    result: Tensor = functional_call(_Method(model, method), prefixed, tuple(inputs))
    return result
