"""Exported graphs against torch: training at batch 8, a reader's vector at batch 1, one thread each, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from device_app.ranking.session import shared_session
from experiments.bench.table import Cell, Table
from exporters.architectures import ARCHITECTURES
from exporters.gradient_graph import export_gradient_graph
from exporters.graph_writer import bytes_of
from exporters.inference_graph import export_inference_graph
from exporters.readers import SOME, draw_inputs
from exporters.signature import GraphInput, GraphSpec, parameters

BATCH = 8
ROUNDS = 40
WARM_UP = 3
SEED = 7
PRODUCT = (400, 256, 256)
ATTENTION, RECURRENT = "attention", "GRU"
TRAINING_BARS = {ATTENTION: 1.8, RECURRENT: 1.5}
VECTOR_BARS_MS = {ATTENTION: 0.5, RECURRENT: 1.5}
TRAINED = ("nrms", "basis", "fednewsrec", "lstur_ini", "ebnr")
VECTORS = ("nrms", "naml", "huita", "youtubenet", "fednewsrec", "lstur_ini", "ebnr")

Feed = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class _Case:
    """One graph with the same work in torch."""

    graph: bytes
    feed: Feed
    eager: Callable[[], object]

    def run(self, session: ort.InferenceSession) -> Callable[[], object]:
        declared = {each.name for each in session.get_inputs()}
        feed = {name: each for name, each in self.feed.items() if name in declared}
        return lambda: session.run(None, feed)


def run(data: Path) -> list[Table]:
    """Two tables: training and vectors. `data` is not read."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    try:
        return [_training(), _vectors()]
    finally:
        torch.set_num_threads(threads)


def _training() -> Table:
    product = _product()
    ours, eager = _timed(product.run(_session(product.graph)), product.eager)
    rows: list[tuple[Cell, ...]] = [("one matrix product", "-", eager, ours, eager / ours, None, None)]
    for name in TRAINED:
        case = _case(name, "gradient", BATCH)
        ours, device, eager = _timed(
            case.run(_session(case.graph)), case.run(shared_session(case.graph, threads=1)), case.eager
        )
        kind = _kind(name)
        rows.append((name, kind, eager, ours, eager / ours, TRAINING_BARS[kind], device))
    columns = ("model", "kind", "torch eager ms", "graph ms", "times faster", "bar", "device's session ms")
    notes = (
        f"Loss and all gradients, batch {BATCH}, 50 clicks; medians of {ROUNDS} turns, taken in turn, CPU time of one "
        "thread.",
        f"The product is {PRODUCT[0]} x {PRODUCT[1]} x {PRODUCT[2]}, the commonest in NRMS: where both multiply "
        "equally fast, as without AVX-512, a graph gains only what is not multiplying, and the bars are out of reach.",
        "The device's session keeps no memory between runs; the bars are for the graph itself.",
    )
    return Table("Training, gradient graph against torch", columns, rows, notes)


def _vectors() -> Table:
    rows = []
    for name in VECTORS:
        case = _case(name, "user", 1)
        ours, device, eager = _timed(
            case.run(_session(case.graph)), case.run(shared_session(case.graph, threads=1)), case.eager
        )
        kind = _kind(name)
        rows.append((name, kind, eager, ours, VECTOR_BARS_MS[kind], device))
    columns = ("model", "kind", "torch eager ms", "graph ms", "bar ms", "device's session ms")
    return Table("A reader's vector, batch 1", columns, rows)


def _kind(name: str) -> str:
    return RECURRENT if ARCHITECTURES[name].recurrent else ATTENTION


def _case(name: str, purpose: str, batch: int) -> _Case:
    model = ARCHITECTURES[name].build()
    spec = next(each for each in ARCHITECTURES[name].graphs(model) if each.purpose == purpose)
    proto = export_gradient_graph(model, spec) if spec.with_gradients else export_inference_graph(model, spec)
    inputs = draw_inputs(spec, (SOME,) * batch, torch.Generator().manual_seed(SEED))
    feed: Feed = {f"p.{key}": each.numpy() for key, each in parameters(model).items()}
    feed |= {key: each.numpy() for key, each in inputs.items()}
    return _Case(bytes_of(proto), feed, _eager(model, spec, list(inputs.values())))


class _Product(nn.Module):
    """x @ w: how fast each multiplies."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(*PRODUCT[1:]), requires_grad=False)

    def forward(self, clicks: Tensor) -> Tensor:
        return clicks @ self.w


def _product() -> _Case:
    model = _Product()
    x = torch.randn(*PRODUCT[:2])
    spec = GraphSpec("score", "forward", (GraphInput("clicks", ("batch", PRODUCT[1])),), "product")
    feed: Feed = {"p.w": model.w.numpy(), "clicks": x.numpy()}
    return _Case(bytes_of(export_inference_graph(model, spec)), feed, _eager(model, spec, [x]))


def _eager(model: nn.Module, spec: GraphSpec, inputs: list[Tensor]) -> Callable[[], object]:
    """What a training loop in torch does; the graph's parity with it is the exporters' test."""
    if not isinstance(spec.method, str):
        raise TypeError(f"graph {spec.purpose}: only methods are benched")
    method = getattr(model, spec.method)

    def train() -> None:
        model.zero_grad()
        method(*inputs).backward()

    def compute() -> None:
        with torch.inference_mode():
            method(*inputs)

    return train if spec.with_gradients else compute


def _session(graph: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _timed(*works: Callable[[], object]) -> list[float]:
    """Median milliseconds of each, taken in turn, so that a busy machine is busy for all of them."""
    taken: list[list[float]] = [[] for _ in works]
    for turn in range(WARM_UP + ROUNDS):
        for work, times in zip(works, taken, strict=True):
            started = time.thread_time()
            work()
            if turn >= WARM_UP:
                times.append((time.thread_time() - started) * 1000)
    return [float(np.median(times)) for times in taken]
