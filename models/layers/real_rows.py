"""Computes row-wise maps only for the real rows of a batch, packed side by side without padding."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from models.shapes import expect_shape

EXAMPLE = 7  # rows while a graph is being traced


def by_row(maps: Callable[[Tensor], tuple[Tensor, ...]], x: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    """Apply `maps` to the rows of x [b, H, D]; each result is [b, H, E].

    With gradients, only the n rows that `mask` [b, H] marks as real are computed, as [n, D]. Histories and titles
    differ in length, so often half of a batch is padding. At padding the result repeats some real row's value: the
    caller must give it weight 0, and so gradient 0. Without gradients there is one reader, whose history is passed
    without padding.
    """
    if not torch.is_grad_enabled():
        return maps(x)
    expect_shape("mask", mask, *x.shape[:2])
    places, shown = real_places(mask)
    rows: Tensor = _Pack.apply(x, mask, places, shown)  # type: ignore[no-untyped-call]
    return tuple(_Unpack.apply(each, mask, places, shown) for each in maps(rows))  # type: ignore[no-untyped-call]


@torch.library.custom_op("ownfeed::real_places", mutates_args=())
def real_places(mask: Tensor) -> tuple[Tensor, Tensor]:
    """mask [b, H] -> places of the n real rows among all [n], and each row's index among these [b H].

    Both are int64. Padding gets the index of the real row before it. The batch's first row always counts as real, so
    that n is never 0.
    """
    real = (mask != 0).flatten()
    real[:1] = True
    return real.nonzero().squeeze(1), real.cumsum(0) - 1


@real_places.register_fake
def _(mask: Any) -> tuple[Tensor, Tensor]:
    """The traced version: n is a free axis of the graph, besides those of its inputs."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    environment = mask.fake_mode.shape_env
    source = ConstantSource(f"real_rows_{len(environment.backed_var_to_val)}")
    symbol = environment.create_symbol(EXAMPLE, source, DimDynamic.DYNAMIC)
    n = environment.create_symintnode(symbol, hint=EXAMPLE, source=source)
    places = mask.shape[0] * mask.shape[1]
    return mask.new_empty(n, dtype=torch.int64), mask.new_empty(places, dtype=torch.int64)


class _Pack(torch.autograd.Function):
    """x [b, H, D] -> rows [n, D]; the gradient at padding is 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, places: Tensor, shown: Tensor) -> Tensor:
        ctx.save_for_backward(mask, shown)
        return x.flatten(0, 1).index_select(0, places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        mask, shown = ctx.saved_tensors
        unpacked = gradient.index_select(0, shown).view(*mask.shape, gradient.shape[-1])
        return unpacked * (mask != 0).unsqueeze(-1), None, None, None


class _Unpack(torch.autograd.Function):
    """rows [n, D] -> [b, H, D]. Padding has no gradient, so each row's gradient comes from one place only."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, mask: Tensor, places: Tensor, shown: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        return rows.index_select(0, shown).view(*mask.shape, rows.shape[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (places,) = ctx.saved_tensors
        return gradient.flatten(0, 1).index_select(0, places), None, None, None
