"""Traces a function of tensors to a graph of plain operators with named free axes.

The same trace serves values and gradients: make_fx records while autograd runs, so the backward pass is operators too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, fx
from torch._decomp import core_aten_decompositions
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo import config as dynamo_config
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

# Operators that ONNX has itself and torch would decompose.
KEPT_WHOLE = (torch.ops.aten.split_with_sizes.default, torch.ops.aten.embedding_dense_backward.default)


@dataclass(frozen=True)
class Trace:
    """graph: operators with their shapes (node.meta["val"]); axes: torch's symbol of a size -> the axis's name."""

    graph: fx.Graph
    axes: Mapping[Any, str]


def trace(function: Callable[..., Any], tensors: Sequence[Tensor], axes: Sequence[tuple[int | str, ...]]) -> Trace:
    """Trace `function(*tensors)`; `axes` names the free axes of each tensor, whose sizes in `tensors` are examples.

    Axes with one name must have one size, different names different sizes, and no size may be 1. Raises RuntimeError if
    the function read the size of a free axis in a way that is only right for the example.
    """
    environment = ShapeEnv()
    with quick_tracing():
        mode = FakeTensorMode(shape_env=environment)
    fakes = [_fake(mode, place, each, free) for place, (each, free) in enumerate(zip(tensors, axes, strict=True))]
    names: dict[Any, str] = {}
    for fake, free in zip(fakes, axes, strict=True):
        sizes: Sequence[Any] = fake.shape
        names |= {size.node.expr: name for size, name in zip(sizes, free, strict=True) if isinstance(name, str)}
    with enable_python_dispatcher(), mode:
        traced = make_fx(function, tracing_mode="real", decomposition_table=_decompositions())(*fakes)
    if environment.replacements or len(set(names.values())) != len(names):
        raise RuntimeError(f"the trace holds for one size of a free axis only: {environment.replacements or names}")
    traced.graph.eliminate_dead_code()
    return Trace(traced.graph, names)


@cache
def _decompositions() -> dict[Any, Any]:
    """Return torch's operator decompositions; built once, because it takes a tenth of a second.

    Without them, losses with mean reduction export gradients that are wrong by a factor of the batch size.
    """
    known: Mapping[Any, Any] = core_aten_decompositions()
    return {op: known[op] for op in known if op not in KEPT_WHOLE}


def _fake(mode: FakeTensorMode, place: int, example: Tensor, axes: tuple[int | str, ...]) -> Tensor:
    # DUCK: free axes of one example size get one symbol, as axes of one name should.
    sizes = [DimDynamic.DUCK if isinstance(axis, str) else DimDynamic.STATIC for axis in axes]
    context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
    return mode.from_tensor(example, source=ConstantSource(f"input{place}"), symbolic_context=context)


def quick_tracing() -> AbstractContextManager[None]:
    """Turn off torch's cache of traced shapes, which costs more than it saves with free axes."""
    return cast(AbstractContextManager[None], dynamo_config.patch(fake_tensor_cache_enabled=False))
