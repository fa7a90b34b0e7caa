"""Compares ONNX Runtime's float32 with torch, graph by graph.

A model that fails is not packaged. Every graph runs at batches of 1, 3 and 17 readers, among them one without clicks,
one with a single click, and one with a full history in one channel; where the length of a history is free, at lengths
of 1, 2, 17 and 50; with the model's own weights and with random ones. torch computes in float64, because its float32
deviates as much as a graph may (2.2e-6 in a DSSM gradient). Tolerances are absolute where no output exceeds 1, and
relative to the largest value of loss and gradients otherwise: near 100, neighbouring float32 numbers are 8e-6 apart.

`draw_inputs` draws a graph's inputs as devices and servers feed them, with the hard cases; the Node test uses it, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from exporters.graph import loss_and_gradients
from exporters.signature import GraphInput, GraphSpec, call, parameters
from models.shapes import CLICKS, TITLE_WORDS
from protocol.recall import CLICKS_AXIS

NONE, ONE, FULL, SOME = "no clicks", "one click", "full history", "some clicks"
NEWS = 7  # candidates, or rows of a table: far fewer than clicks, so that rows repeat
LONGER = 3  # additional words of the longest abstract, compared with the longest title
UNNAMED = 2  # rows of a table that no reader names


class _Draw:
    """One batch of readers; each kind of input has a method of the input's name."""

    def __init__(
        self, spec: GraphSpec, readers: Sequence[str], draw: torch.Generator, clicks: int, length: int
    ) -> None:
        self.spec = spec
        self.readers = readers
        self.draw = draw
        texts = {"length": length, "abstract_length": length + LONGER}
        self.sizes = {"batch": len(readers), "news": NEWS, CLICKS_AXIS: clicks, **texts}
        self.clicks = next((self.shape(each)[1] for each in spec.inputs if each.name in CLICK_INPUTS), 0)
        counts = torch.tensor([self._count(kind) for kind in readers])
        self.mask = (torch.arange(self.clicks) >= self.clicks - counts[:, None]).float()  # [b, H], left padding
        self.members: Tensor | None = None

    def _count(self, kind: str) -> int:
        fixed = {NONE: 0, ONE: 1, FULL: self.clicks}
        return fixed[kind] if kind in fixed else int(torch.randint(2, max(self.clicks, 3), (), generator=self.draw))

    def shape(self, given: GraphInput) -> tuple[int, ...]:
        return given.shape(self.sizes)

    def click_mask(self, given: GraphInput) -> Tensor:
        return self.mask

    def click_vectors(self, given: GraphInput) -> Tensor:
        return self.vectors(given) * self.mask[..., None]

    def vectors(self, given: GraphInput) -> Tensor:
        return normalize(torch.randn(self.shape(given), generator=self.draw), dim=-1)

    def membership(self, given: GraphInput) -> Tensor:
        """Every real click in one channel; one reader has a single full channel, every reader an empty one."""
        channels = self.shape(given)[1]
        labels = torch.randint(channels, self.mask.shape, generator=self.draw)
        for row, kind in enumerate(self.readers):
            labels[row] = 0 if kind == FULL else labels[row].clamp_max(channels - 2)
        self.members = one_hot(labels, channels).transpose(1, 2) * self.mask[:, None, :]
        return self.members

    def quotas(self, given: GraphInput) -> Tensor:
        if self.members is None:
            raise ValueError("quotas must be drawn after membership")
        return self.members.sum(-1) / self.mask.sum(-1).clamp_min(1)[:, None]

    def click_rows(self, given: GraphInput) -> Tensor:
        return self.rows(given) * self.mask.long()

    def rows(self, given: GraphInput) -> Tensor:
        return torch.randint(given.rows(self.sizes) - UNNAMED, self.shape(given), generator=self.draw)

    def topics(self, given: GraphInput) -> Tensor:
        """A topic's row number for each article; the first article has the unknown topic, 0."""
        ids = torch.randint(given.rows(self.sizes), self.shape(given), generator=self.draw)
        ids[0] = 0
        return ids

    def word_mask(self, given: GraphInput) -> Tensor:
        """Titles of random lengths, with an empty one, one of one word, and a full one, as for readers."""
        titles, length = self.shape(given)
        lengths = torch.randint(1, length + 1, (titles,), generator=self.draw)
        fixed = {NONE: 0, ONE: 1, FULL: length}
        for row, kind in enumerate(self.readers[:titles]):
            lengths[row] = fixed.get(kind, int(lengths[row]))
        return (torch.arange(length) < lengths[:, None]).float()

    def shares(self, given: GraphInput) -> Tensor:
        return torch.rand(self.shape(given), generator=self.draw)


CLICK_INPUTS = ("clicks", "contexts", "click_mask", "click_rows")
DRAWN: dict[str, Callable[[_Draw, GraphInput], Tensor]] = {
    "clicks": _Draw.click_vectors,
    "contexts": _Draw.click_vectors,
    "click_mask": _Draw.click_mask,
    "membership": _Draw.membership,
    "quotas": _Draw.quotas,
    "candidates": _Draw.vectors,
    "table": _Draw.vectors,
    "clicked": _Draw.vectors,
    "basis": _Draw.vectors,
    "axes": _Draw.vectors,
    "log_normalisers": _Draw.shares,
    "chances": _Draw.shares,
    "log_posterior": _Draw.shares,
    "click_rows": _Draw.click_rows,
    "candidate_rows": _Draw.rows,
    "features": _Draw.shares,
    "word_vectors": _Draw.vectors,
    "word_mask": _Draw.word_mask,
    "abstract_vectors": _Draw.vectors,
    "abstract_mask": _Draw.word_mask,
    "category": _Draw.topics,
    "subcategory": _Draw.topics,
    "pooled": _Draw.vectors,
    "slopes": _Draw.vectors,
}


def draw_inputs(
    spec: GraphSpec, readers: Sequence[str], draw: torch.Generator, *, clicks: int = CLICKS, length: int = TITLE_WORDS
) -> dict[str, Tensor]:
    """Return a tensor for every input of the graph: unit news vectors, left padding, clusters with gaps.

    clicks: length of a full history, where the graph leaves it free; length: length of the longest title, likewise.
    """
    batch = _Draw(spec, readers, draw, clicks, length)
    drawn = {}
    for each in spec.inputs:
        name = each.name.split(".")[0]
        if name not in DRAWN:
            raise ValueError(
                f"graph {spec.purpose}: no sample input is defined for {each.name}; "
                "add it to DRAWN in exporters/parity.py"
            )
        drawn[each.name] = DRAWN[name](batch, each)
    return drawn


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
"""Numbers of readers, and the length of a full history; lengths other than 50 are for graphs that leave it free."""


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

    At the kink of a ReLU, ONNX Runtime and torch may round to different sides, and the gradients of both are right. So
    a batch that differs is drawn once more, and decides.

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

    def compared(values: Mapping[str, Tensor], readers: Sequence[str], clicks: int) -> tuple[float, float]:
        """Return the largest difference of all outputs, and the largest value to measure it against."""
        inputs = draw_inputs(spec, readers, draw, clicks=clicks, length=length)
        feed = {f"p.{name}": each.numpy() for name, each in values.items()}
        feed |= {name: each.numpy() for name, each in inputs.items()}
        got = session.run(names, {name: each for name, each in feed.items() if name in declared})
        wanted = _oracle(model, spec, values, list(inputs.values()))
        size, found = max(map(_size, wanted)), 0.0
        for name, ours, theirs in zip(names, got, wanted, strict=True):
            difference = _difference(ours, theirs)
            if not difference <= tolerance * size:
                raise ParityError(spec.purpose, name, readers, difference, tolerance * size)
            found = max(found, difference)
        return found, size

    for values in _weights(model, draw):
        for readers, clicks in BATCHES:
            if clicks != CLICKS and CLICKS_AXIS not in spec.free_axes:
                continue
            try:
                difference, size = compared(values, readers, clicks)
            except ParityError:
                difference, size = compared(values, readers, clicks)
            largest, relative, cases = max(largest, difference), max(relative, difference / size), cases + 1
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
