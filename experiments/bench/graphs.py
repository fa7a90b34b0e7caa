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
from experiments.bench.products import products_ms
from experiments.bench.table import Cell, Table
from experiments.bench.textbook import plain
from exporters.architectures import ARCHITECTURES
from exporters.gradient_graph import export_gradient_graph
from exporters.graph_writer import bytes_of
from exporters.inference_graph import export_inference_graph
from exporters.readers import FULL, SOME, draw_inputs
from exporters.signature import GraphInput, GraphSpec, parameters

BATCH = 8
ROUNDS = 40
WARM_UP = 3
SEED = 7
PRODUCT = (400, 256, 256)
ATTENTION, RECURRENT = "attention", "GRU"
TRAINING_BARS = {ATTENTION: 1.8, RECURRENT: 1.5}
VECTOR_BARS_MS = {ATTENTION: 0.5, RECURRENT: 1.5}
TRAINED = ("nrms", "basis", "fednewsrec_256", "fednewsrec", "lstur_ini", "ebnr")
VECTORS = ("nrms", "naml", "huita", "youtubenet", "fednewsrec_256", "fednewsrec", "lstur_ini", "ebnr")

Feed = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class _Case:
    """One graph with the same work in torch."""

    graph: bytes
    feed: Feed
    eager: Callable[[], object]
    plain: Callable[[], object]

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
    rows: list[tuple[Cell, ...]] = [
        ("one matrix product", "-", eager, None, ours, eager / ours, None, None, None, None)
    ]
    for name in TRAINED:
        case = _case(name, "gradient", BATCH)
        ours, device, eager, textbook = _timed(
            case.run(_session(case.graph)), case.run(shared_session(case.graph, threads=1)), case.eager, case.plain
        )
        kind = _kind(name)
        floor = products_ms(case.graph, case.run)
        rows.append(
            (name, kind, textbook, eager, ours, textbook / ours, TRAINING_BARS[kind], floor, textbook / floor, device)
        )
    columns = (
        *("model", "kind", "torch eager ms", "our layers eager ms", "graph ms", "times faster", "bar"),
        *("products alone ms", "at most", "device's session ms"),
    )
    notes = (
        f"Loss and all gradients, batch {BATCH}, 50 clicks; medians of {ROUNDS} turns, taken in turn, CPU time of one "
        "thread.",
        f"The product is {PRODUCT[0]} x {PRODUCT[1]} x {PRODUCT[2]}, the commonest in NRMS: where both multiply "
        "equally fast, as without AVX-512, a graph gains only what is not multiplying, and the bars are out of reach.",
        "torch eager is the textbook's layers with autograd and nn.GRU; ours have two backward passes written out.",
        "Products alone is what ONNX Runtime multiplies for, each product's fastest run: a graph of nothing else would "
        "be 'at most' that much faster.",
        "The device's session keeps no memory between runs; the bars are for the graph itself.",
    )
    return Table("Training, gradient graph against torch", columns, rows, notes)


def _vectors() -> Table:
    rows = []
    for name in VECTORS:
        full, case = _case(name, "user", 1, FULL), _case(name, "user", 1)
        whole, ours, device, eager = _timed(
            full.run(_session(full.graph)),
            case.run(_session(case.graph)),
            case.run(shared_session(case.graph, threads=1)),
            case.plain,
        )
        kind = _kind(name)
        rows.append((name, kind, eager, ours, whole, VECTOR_BARS_MS[kind], products_ms(full.graph, full.run), device))
    columns = ("model", "kind", "torch eager ms", "graph ms", "50 clicks ms", "bar ms", "products ms", "device's ms")
    notes = ("17 clicks of 50, and a full history: the GRU's time grows with clicks, attention's does not.",)
    return Table("A reader's vector, batch 1", columns, rows, notes)


def _kind(name: str) -> str:
    return RECURRENT if ARCHITECTURES[name].recurrent else ATTENTION


def _case(name: str, purpose: str, batch: int, reader: str = SOME) -> _Case:
    model = ARCHITECTURES[name].build()
    spec = next(each for each in ARCHITECTURES[name].graphs(model) if each.purpose == purpose)
    proto = export_gradient_graph(model, spec) if spec.with_gradients else export_inference_graph(model, spec)
    inputs = draw_inputs(spec, (reader,) * batch, torch.Generator().manual_seed(SEED))
    feed: Feed = {f"p.{key}": each.numpy() for key, each in parameters(model).items()}
    feed |= {key: each.numpy() for key, each in inputs.items()}
    given = list(inputs.values())
    return _Case(bytes_of(proto), feed, _eager(model, spec, given), _eager(plain(model), spec, given))


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
    eager = _eager(model, spec, [x])
    return _Case(bytes_of(export_inference_graph(model, spec)), feed, eager, eager)


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
