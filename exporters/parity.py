"""torch against ONNX Runtime, graph by graph. No model is packaged that fails.

Every graph is run at batches of 1, 3 and 17 readers, among them one without clicks, one with a single click, one with
a full history in one channel; with the model's own weights and with fresh ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from exporters.signature import GraphSpec, call, parameters

SCORE_TOLERANCE = 1e-5
GRADIENT_TOLERANCE = 2e-6
FRESH_SPREAD = 0.08
NONE, ONE, FULL, SOME = "no clicks", "one click", "full history", "some clicks"
BATCHES: tuple[tuple[str, ...], ...] = (
    (NONE,),
    (ONE,),
    (FULL,),
    (SOME,),
    (NONE, ONE, FULL),
    (NONE, ONE, FULL) + (SOME,) * 14,
)


class ParityError(RuntimeError):
    """A graph does not compute what the model computes."""

    def __init__(self, purpose: str, output: str, readers: Sequence[str], difference: float, tolerance: float) -> None:
        super().__init__(
            f"graph {purpose}, output {output}, batch of {len(readers)} ({', '.join(dict.fromkeys(readers))}): "
            f"differs from torch by {difference:.3g}, tolerance {tolerance:g}"
        )


@dataclass(frozen=True)
class Parity:
    """What a check saw: the largest absolute difference over all outputs and cases."""

    largest_difference: float
    cases: int


def check_parity(model: nn.Module, spec: GraphSpec, graph: bytes, *, seed: int = 0) -> Parity:
    """Compare one graph with torch. Raises ParityError, naming output, batch and difference."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    declared = {each.name for each in session.get_inputs()}
    names = [each.name for each in session.get_outputs()]
    tolerance = GRADIENT_TOLERANCE if spec.with_gradients else SCORE_TOLERANCE
    draw = torch.Generator().manual_seed(seed)
    largest, cases = 0.0, 0
    for values in _weights(model, draw):
        for readers in BATCHES:
            inputs = draw_inputs(spec, readers, draw)
            feed = {f"p.{name}": each.numpy() for name, each in values.items()}
            feed |= {name: each.numpy() for name, each in inputs.items()}
            got = session.run(names, {name: each for name, each in feed.items() if name in declared})
            wanted = _oracle(model, spec, values, list(inputs.values()))
            for name, ours, theirs in zip(names, got, wanted, strict=True):
                difference = _difference(ours, theirs)
                if not difference <= tolerance:
                    raise ParityError(spec.purpose, name, readers, difference, tolerance)
                largest = max(largest, difference)
            cases += 1
    return Parity(largest, cases)


def draw_inputs(spec: GraphSpec, readers: Sequence[str], draw: torch.Generator) -> dict[str, Tensor]:
    """Readers as a device would feed them: unit news vectors, left padding, clusters of real clicks with gaps."""
    batch = len(readers)
    by_name = {each.name: each for each in spec.inputs}
    drawn: dict[str, Tensor] = {}
    sizes = {"batch": batch, "news": 7}
    clicks = next(each for name, each in by_name.items() if name in ("clicks", "contexts")).shape(sizes)[1]
    counts = torch.tensor([_click_count(kind, clicks, draw) for kind in readers])
    mask = (torch.arange(clicks) >= clicks - counts[:, None]).float()  # [b, H]
    for name in ("clicks", "contexts"):
        if name in by_name:
            drawn[name] = _unit(by_name[name].shape(sizes), draw) * mask[..., None]
    if "click_mask" in by_name:
        drawn["click_mask"] = mask
    if "membership" in by_name:
        channels = by_name["membership"].shape(sizes)[1]
        labels = torch.randint(channels, (batch, clicks), generator=draw)
        for row, kind in enumerate(readers):
            labels[row] = 0 if kind == FULL else labels[row].clamp_max(channels - 2)  # leaves channels empty
        members = torch.nn.functional.one_hot(labels, channels).transpose(1, 2) * mask[:, None, :]
        drawn["membership"] = members
        if "quotas" in by_name:
            drawn["quotas"] = members.sum(-1) / mask.sum(-1).clamp_min(1)[:, None]
    if "candidates" in by_name:
        drawn["candidates"] = _unit(by_name["candidates"].shape(sizes), draw)
    if "features" in by_name:
        drawn["features"] = torch.rand(by_name["features"].shape(sizes), generator=draw)
    return {name: drawn[name] for name in by_name}


def _click_count(kind: str, clicks: int, draw: torch.Generator) -> int:
    fixed = {NONE: 0, ONE: 1, FULL: clicks}
    return fixed[kind] if kind in fixed else int(torch.randint(2, clicks, (), generator=draw))


def _unit(shape: tuple[int, ...], draw: torch.Generator) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(shape, generator=draw), dim=-1)


def _weights(model: nn.Module, draw: torch.Generator) -> Iterator[dict[str, Tensor]]:
    own = parameters(model)
    yield own
    for _ in range(2):
        yield {
            name: each + (torch.rand(each.shape, generator=draw) - 0.5) * 2 * FRESH_SPREAD for name, each in own.items()
        }


def _oracle(
    model: nn.Module, spec: GraphSpec, values: Mapping[str, Tensor], inputs: Sequence[Tensor]
) -> list[NDArray[np.float32]]:
    if not spec.with_gradients:
        with torch.no_grad():
            return [call(model, spec.method, values, inputs).numpy()]
    leaves = {name: each.detach().requires_grad_(True) for name, each in values.items()}
    loss = call(model, spec.method, leaves, inputs)
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    return [loss.detach().numpy(), *(each.numpy() for each in gradients)]


def _difference(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> float:
    if ours.shape != theirs.shape or not np.isfinite(ours).all():
        return float("inf")
    return float(np.abs(ours.astype(np.float64) - theirs).max(initial=0.0))
