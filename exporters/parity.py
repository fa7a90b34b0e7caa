"""Compares ONNX Runtime's float32 with torch, graph by graph.

A model that fails is not packaged. Every graph runs at batches of 1, 3 and 17 readers, among them one without clicks,
one with a single click, and one with a full history in one channel; where the length of a history is free, at lengths
of 1, 2, 17 and 50; with the model's own weights and with random ones. torch computes in float64, because its float32
deviates as much as a graph may (2.2e-6 in a DSSM gradient). Tolerances are absolute where no output exceeds 1, and
relative to the largest value of loss and gradients otherwise: near 100, neighbouring float32 numbers are 8e-6 apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from exporters.graph import loss_and_gradients
from exporters.readers import FULL, NONE, ONE, SOME, draw_inputs
from exporters.signature import GraphSpec, call, parameters
from models.shapes import CLICKS, TITLE_WORDS
from protocol.recall import CLICKS_AXIS

SCORE_TOLERANCE = 1e-5
GRADIENT_TOLERANCE = 2e-6
FRESH_SPREAD = 0.08
BATCHES: tuple[tuple[tuple[str, ...], int], ...] = (
    ((NONE,), CLICKS),
    ((ONE,), CLICKS),
    ((FULL,), CLICKS),
    ((SOME,), CLICKS),
    ((NONE, ONE, FULL), CLICKS),
    ((NONE, ONE, FULL) + (SOME,) * 14, CLICKS),
    ((FULL,), 1),
    ((NONE, FULL), 2),
    ((NONE, ONE, FULL, SOME), 17),
)
"""Readers, and the length of a full history. Lengths other than 50 are for graphs that leave it free."""


class ParityError(RuntimeError):
    """A graph does not compute what the model computes."""

    def __init__(self, purpose: str, output: str, readers: Sequence[str], difference: float, tolerance: float) -> None:
        super().__init__(
            f"graph {purpose}, output {output}, batch of {len(readers)} ({', '.join(dict.fromkeys(readers))}): "
            f"differs from torch by {difference:.3g}, tolerance {tolerance:g}"
        )


@dataclass(frozen=True)
class Parity:
    """The result of a comparison: the largest difference over all outputs and cases.

    `relative` divides it by the largest value of loss and gradients if that exceeds 1.
    """

    largest_difference: float
    relative: float
    cases: int


def check_parity(
    model: nn.Module, spec: GraphSpec, graph: bytes, *, seed: int = 0, length: int = TITLE_WORDS
) -> Parity:
    """Compare one graph with torch. Raises ParityError, naming output, batch and difference.

    length: number of words in the longest title, where the graph leaves it free.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_mem_pattern = False  # the number of real rows differs between runs
    session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    declared = {each.name for each in session.get_inputs()}
    names = [each.name for each in session.get_outputs()]
    tolerance = GRADIENT_TOLERANCE if spec.with_gradients else SCORE_TOLERANCE
    draw = torch.Generator().manual_seed(seed)
    largest, relative, cases = 0.0, 0.0, 0
    for values in _weights(model, draw):
        for readers, clicks in BATCHES:
            if clicks != CLICKS and CLICKS_AXIS not in spec.free_axes:
                continue
            inputs = draw_inputs(spec, readers, draw, clicks=clicks, length=length)
            feed = {f"p.{name}": each.numpy() for name, each in values.items()}
            feed |= {name: each.numpy() for name, each in inputs.items()}
            got = session.run(names, {name: each for name, each in feed.items() if name in declared})
            wanted = _oracle(model, spec, values, list(inputs.values()))
            size = max(map(_size, wanted))
            for name, ours, theirs in zip(names, got, wanted, strict=True):
                difference = _difference(ours, theirs)
                if not difference <= tolerance * size:
                    raise ParityError(spec.purpose, name, readers, difference, tolerance * size)
                largest, relative = max(largest, difference), max(relative, difference / size)
            cases += 1
    return Parity(largest, relative, cases)


def _weights(model: nn.Module, draw: torch.Generator) -> Iterator[dict[str, Tensor]]:
    own = parameters(model)
    yield own
    for _ in range(2):
        yield {
            name: each + (torch.rand(each.shape, generator=draw) - 0.5) * 2 * FRESH_SPREAD for name, each in own.items()
        }


def _oracle(
    model: nn.Module, spec: GraphSpec, values: Mapping[str, Tensor], inputs: Sequence[Tensor]
) -> list[NDArray[np.float64]]:
    exact = {name: each.double() for name, each in values.items()}
    fed = [each.double() if each.is_floating_point() else each for each in inputs]
    if spec.with_gradients:
        return [each.numpy() for each in loss_and_gradients(model, spec, exact, fed)]
    with torch.no_grad():
        return [call(model, spec.method, exact, fed).numpy()]


def _size(values: NDArray[np.float64]) -> float:
    """The largest value, at least 1: float32 has 24 bits of precision at any size."""
    return max(1.0, float(np.abs(values).max(initial=0.0)))


def _difference(ours: NDArray[np.float32], theirs: NDArray[np.float64]) -> float:
    if ours.shape != theirs.shape or not np.isfinite(ours).all():
        return float("inf")
    return float(np.abs(ours.astype(np.float64) - theirs).max(initial=0.0))
