"""Compares exported graphs with torch in one run on one thread.

Training is measured at batch 8, a reader's vector at batch 1. The reference in torch uses the layers as torch users
write them, with autograd. models.layers writes out two backward passes and leaves padding uncomputed, which makes torch
faster too; the plain layers here have the same values.
"""

import copy
import json
import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from device_app.ranking.session import GraphSession
from experiments.records import Cell, Table
from exporters.architectures import architectures
from exporters.graph import export_gradient_graph, export_inference_graph
from exporters.parity import FULL, SOME, draw_inputs
from exporters.signature import GraphInput, GraphSpec, parameters
from exporters.translate import bytes_of
from models.layers.attention import AdditiveAttention, SelfAttention, masked_softmax
from models.layers.gru import MaskedGru
from models.shapes import CLICKS
from protocol.recall import CLICKS_AXIS

ModelT = TypeVar("ModelT", bound=nn.Module)


class PlainAttention(nn.Module):
    """SelfAttention by its formula: products, a masked softmax, a product."""

    def __init__(self, layer: SelfAttention) -> None:
        super().__init__()
        self.query, self.key, self.value = layer.query, layer.key, layer.value
        self.heads = layer.heads

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x [b, H, Din], mask [b, H] -> [b, H, h d]."""
        q, k, v = (
            layer(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        weights = masked_softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), mask[:, None, None, :])
        contexts: Tensor = (weights @ v).transpose(1, 2).flatten(2) * mask.unsqueeze(-1)
        return contexts


class PlainPooling(nn.Module):
    """AdditiveAttention by its formula, over all rows."""

    def __init__(self, layer: AdditiveAttention) -> None:
        super().__init__()
        self.hidden, self.query = layer.hidden, layer.query

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x [b, H, D], mask [b, H] -> [b, D], or mask [b, C, H] -> [b, C, D]."""
        each = mask if mask.dim() == x.dim() else mask.unsqueeze(1)  # [b, C, H]
        weights = masked_softmax(self.query(self.hidden(x).tanh()).transpose(1, 2), each)
        pooled: Tensor = weights @ x
        return pooled if mask.dim() == x.dim() else pooled.squeeze(1)


class PlainGru(nn.Module):
    """MaskedGru by nn.GRU over all rows, real ones first; returns the state after the last real row."""

    def __init__(self, layer: MaskedGru) -> None:
        super().__init__()
        self.input, self.recurrent = layer.input, layer.recurrent

    def forward(self, x: Tensor, mask: Tensor, start: Tensor | None = None) -> Tensor:
        """x [b, H, Din], mask [b, H], start [b, D] -> [b, D]."""
        order = mask.argsort(dim=1, descending=True, stable=True)
        rows = x.gather(1, order.unsqueeze(-1).expand_as(x))
        state = x.new_zeros(len(x), self.recurrent.in_features) if start is None else start
        bias = self.input.bias
        weights = [self.input.weight, self.recurrent.weight, bias, torch.zeros_like(bias)]
        states, _ = torch.gru(rows, state.unsqueeze(0).contiguous(), weights, True, 1, 0.0, True, False, True)
        after = torch.cat([state.unsqueeze(1), states], dim=1)
        return after[torch.arange(len(x)), mask.sum(dim=1).long()]


def plain(model: ModelT) -> ModelT:
    """Return a copy of the model with the plain layers and the same parameter values."""
    copied = copy.deepcopy(model)
    for parent in list(copied.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, SelfAttention):
                setattr(parent, name, PlainAttention(child))
            elif isinstance(child, AdditiveAttention):
                setattr(parent, name, PlainPooling(child))
            elif isinstance(child, MaskedGru):
                setattr(parent, name, PlainGru(child))
    return copied


ROUNDS = 40
WARM_UP = 3
SEED = 7
CLICKS_PLACES = {"clicks": 1, "click_mask": 1, "membership": 2}

GraphInputs = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Exported:
    """A model's graph for one purpose."""

    model: nn.Module
    spec: GraphSpec
    graph: bytes


@dataclass(frozen=True)
class GraphCase:
    """One graph and the same work in torch."""

    graph: bytes
    feed: GraphInputs
    eager: Callable[[], object]
    plain: Callable[[], object]

    def run(self, session: ort.InferenceSession) -> Callable[[], object]:
        declared = {each.name for each in session.get_inputs()}
        feed = {name: each for name, each in self.feed.items() if name in declared}
        return lambda: session.run(None, feed)

    def on_device(self) -> Callable[[], object]:
        """Return a function that runs the graph as a device does.

        Nothing is cached between runs, and padding common to all readers is cut off.
        """
        weights = {name.removeprefix("p."): each for name, each in self.feed.items() if name.startswith("p.")}
        session = GraphSession(self.graph, weights)
        inputs = {name: each for name, each in self.feed.items() if name in session.inputs}
        return lambda: session(**inputs)


@cache
def _exported(name: str, purpose: str) -> Exported:
    model = architectures()[name].build()
    spec = next(each for each in architectures()[name].graphs(model) if each.purpose == purpose)
    proto = export_gradient_graph(model, spec) if spec.with_gradients else export_inference_graph(model, spec)
    return Exported(model, spec, bytes_of(proto))


def drawn_case(
    name: str, purpose: str, batch: int, reader: str = SOME, clicks: int = CLICKS, columns: int = CLICKS
) -> GraphCase:
    """Draw readers with at most `clicks` clicks, keeping the newest `columns` of their padded histories."""
    exported = _exported(name, purpose)
    drawn = draw_inputs(_free(exported.spec), (reader,) * batch, torch.Generator().manual_seed(SEED), clicks=clicks)
    inputs = {key: _fitted(each, key, columns) for key, each in drawn.items()}
    feed: GraphInputs = {f"p.{key}": each.numpy() for key, each in parameters(exported.model).items()}
    feed |= {key: each.numpy() for key, each in inputs.items()}
    tensors = list(inputs.values())
    return GraphCase(
        exported.graph,
        feed,
        in_torch(exported.model, exported.spec, tensors),
        in_torch(plain(exported.model), exported.spec, tensors),
    )


def _free(spec: GraphSpec) -> GraphSpec:
    """Return the spec with histories of any length, even for graphs that take fifty."""

    def freed(declared: GraphInput) -> GraphInput:
        place = CLICKS_PLACES.get(declared.name)
        return replace(
            declared, axes=tuple(CLICKS_AXIS if at == place else axis for at, axis in enumerate(declared.axes))
        )

    return replace(spec, inputs=tuple(map(freed, spec.inputs)))


def _fitted(value: Tensor, name: str, columns: int) -> Tensor:
    """Return histories padded to 50 on the left, of which the newest columns are used."""
    if name not in CLICKS_PLACES:
        return value
    place = CLICKS_PLACES[name]
    missing = CLICKS - value.shape[place]
    padding = value.new_zeros([missing if axis == place else size for axis, size in enumerate(value.shape)])
    return torch.cat([padding, value], dim=place).narrow(place, CLICKS - columns, columns).contiguous()


def clicks_of(case: GraphCase) -> tuple[int, int]:
    """Return the number of real clicks, and the length of the longest history."""
    counts = case.feed["click_mask"].sum(axis=1)
    return int(counts.sum()), int(counts.max())


def in_torch(model: nn.Module, spec: GraphSpec, inputs: list[Tensor]) -> Callable[[], object]:
    """Return a training step in torch; the exporters' tests compare the graph with it."""
    if not isinstance(spec.method, str):
        raise TypeError(f"graph {spec.purpose}: only methods can be timed")
    method = getattr(model, spec.method)

    def train() -> None:
        model.zero_grad()
        method(*inputs).backward()

    def compute() -> None:
        with torch.inference_mode():
            method(*inputs)

    return train if spec.with_gradients else compute


def open_graph(graph: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def timed(*works: Callable[[], object]) -> list[float]:
    """Return the median milliseconds of each function, measured in alternation, so that a busy machine slows
    all alike.
    """
    measured: list[list[float]] = [[] for _ in works]
    for turn in range(WARM_UP + ROUNDS):
        for work, times in zip(works, measured, strict=True):
            started = time.thread_time()
            work()
            if turn >= WARM_UP:
                times.append((time.thread_time() - started) * 1000)
    return [float(np.median(times)) for times in measured]


PRODUCTS = frozenset({"Gemm", "FusedGemm", "MatMul", "FusedMatMul", "GRU"})
"""Kernels of matrix products, whose time no rewriting of the rest can save."""
PRODUCT_RUNS = 25
BATCH = 8
PRODUCT = (400, 256, 256)
ATTENTION, RECURRENT = "attention", "GRU"
TRAINING_BARS = {ATTENTION: 1.8, RECURRENT: 1.5}
VECTOR_BARS_MS = {ATTENTION: 0.5, RECURRENT: 1.5}
TRAINED = ("nrms", "basis", "fednewsrec_256", "fednewsrec", "lstur_ini", "ebnr")
HISTORIES = (("mixed, 5 to 40 clicks", SOME, 50), ("17 clicks each", FULL, 17), ("50 clicks each", FULL, 50))
SHORT = 17
VECTORS = ("nrms", "naml", "huita", "youtubenet", "fednewsrec_256", "fednewsrec", "lstur_ini", "ebnr")


def run(data: Path) -> list[Table]:
    """Return three tables: training, training by length of history, and vectors. `data` is ignored."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    try:
        return [_training(), _lengths(), _vectors()]
    finally:
        torch.set_num_threads(threads)


def _training() -> Table:
    product = _product()
    ours, eager = timed(product.run(open_graph(product.graph)), product.eager)
    rows: list[tuple[Cell, ...]] = [
        ("one matrix product", "-", eager, None, ours, eager / ours, None, None, None, None)
    ]
    for name in TRAINED:
        case = drawn_case(name, "gradient", BATCH)
        ours, device, eager, textbook = timed(
            case.run(open_graph(case.graph)), case.on_device(), case.eager, case.plain
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
    real, _ = clicks_of(drawn_case(TRAINED[0], "gradient", BATCH))
    notes = (
        f"Loss and all gradients, batch {BATCH}; medians of {ROUNDS} runs, one thread. Of {BATCH * CLICKS} clicks, "
        f"padding included, {real} are real. torch eager: textbook layers and nn.GRU. at most: the factor for matrix "
        "products alone.",
    )
    return Table("Training, gradient graph against torch", columns, rows, notes, seeds=(SEED,))


def _lengths() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in TRAINED:
        for label, reader, clicks in HISTORIES:
            padded = drawn_case(name, "gradient", BATCH, reader, clicks)
            _, longest = clicks_of(padded)
            cut = drawn_case(name, "gradient", BATCH, reader, clicks, longest)
            ours, whole, equal = timed(padded.on_device(), padded.plain, cut.plain)
            rows.append((name, label, whole, equal, ours, whole / ours, equal / ours))
    columns = (
        *("model", "histories", "torch eager ms, padded to 50", "torch eager ms, cut to the longest"),
        *("graph on a device ms", "times faster than padded", "than cut"),
    )
    notes = (
        "On a device, histories are cut to the longest of the batch; graphs of LSTUR and EBNR always take 50 steps.",
    )
    return Table("Training by length of history", columns, rows, notes, seeds=(SEED,))


def _vectors() -> Table:
    rows = []
    for name in VECTORS:
        full, short = drawn_case(name, "user", 1, FULL), drawn_case(name, "user", 1, FULL, SHORT)
        whole, padded, ours, eager = timed(
            full.run(open_graph(full.graph)), short.run(open_graph(short.graph)), short.on_device(), short.plain
        )
        kind = _kind(name)
        rows.append((name, kind, eager, padded, ours, whole, VECTOR_BARS_MS[kind], products_ms(full.graph, full.run)))
    columns = (
        *("model", "kind", f"{SHORT} clicks: torch eager ms", "graph padded to 50 ms", f"{SHORT} clicks: graph ms"),
        *("50 clicks: graph ms", "bar ms", "products of 50 ms"),
    )
    return Table("A reader's vector, batch 1", columns, rows, seeds=(SEED,))


def _kind(name: str) -> str:
    return RECURRENT if architectures()[name].recurrent else ATTENTION


class _Product(nn.Module):
    """x @ w, to compare the speed of plain multiplication."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(*PRODUCT[1:]), requires_grad=False)

    def forward(self, clicks: Tensor) -> Tensor:
        return clicks @ self.w


def _product() -> GraphCase:
    model = _Product()
    x = torch.randn(*PRODUCT[:2])
    spec = GraphSpec("score", "forward", (GraphInput("clicks", ("batch", PRODUCT[1])),), "product")
    feed: GraphInputs = {"p.w": model.w.numpy(), "clicks": x.numpy()}
    eager = in_torch(model, spec, [x])
    return GraphCase(bytes_of(export_inference_graph(model, spec)), feed, eager, eager)


def products_ms(graph: bytes, run: Callable[[ort.InferenceSession], Callable[[], object]]) -> float:
    """Return milliseconds of one run in the kernels PRODUCTS, by ONNX Runtime's profiler, including fused operators.

    Takes the fastest of PRODUCT_RUNS for each kernel, because its clock runs on while other processes use the
    processor.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        work = run(session)
        for _ in range(PRODUCT_RUNS):
            work()
        events = json.loads(Path(session.end_profiling()).read_text())
    measured: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["args"].get("op_name") in PRODUCTS and "dur" in event:
            measured[event["name"]].append(event["dur"] / 1000)
    return sum(min(each) for name, each in measured.items() if name.endswith("_kernel_time"))
