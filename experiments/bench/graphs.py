"""Exported graphs against torch: training at batch 8, a reader's vector at batch 1, one thread each, in one run."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import onnxruntime as ort
import torch
from torch import Tensor, nn

from experiments.bench.graph_cases import (
    ROUNDS,
    SEED,
    Case,
    GraphInputs,
    clicks_of,
    drawn_case,
    in_torch,
    open_graph,
    timed,
)
from experiments.table import Cell, Table
from exporters.architectures import architectures
from exporters.graph_writer import bytes_of
from exporters.model_graphs import export_inference_graph
from exporters.readers import FULL, SOME
from exporters.signature import GraphInput, GraphSpec
from models.shapes import CLICKS

PRODUCTS = frozenset({"Gemm", "FusedGemm", "MatMul", "FusedMatMul", "GRU"})
"""Kernels of products of matrices, whose time no rewriting of the rest can save."""
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
    """Three tables: training, training by length of history, vectors. `data` is not read."""
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
    real, longest = clicks_of(drawn_case(TRAINED[0], "gradient", BATCH))
    notes = (
        f"Loss and all gradients, batch {BATCH}, histories padded to 50; medians of {ROUNDS} turns, taken in turn, CPU "
        "time of one thread.",
        f"Of the {BATCH * CLICKS} clicks {real} are real, the longest history has {longest}. Graphs compute real "
        "clicks alone where each is computed by itself; torch eager computes all. The next table has other histories.",
        f"The product is {PRODUCT[0]} x {PRODUCT[1]} x {PRODUCT[2]}, the commonest in NRMS: without AVX-512 both "
        "multiply equally fast, and a graph gains what it need not multiply and what is not multiplying.",
        "torch eager is the textbook's layers with autograd and nn.GRU; ours leave padding out and have two backward "
        "passes written out.",
        "Products alone is what ONNX Runtime multiplies for, each product's fastest run: a graph of nothing else would "
        "be 'at most' that much faster.",
        "The device's session keeps no memory between runs, and cuts padding that all readers of a batch share.",
    )
    return Table("Training, gradient graph against torch", columns, rows, notes, seeds=(SEED,))


def _lengths() -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in TRAINED:
        for said, reader, clicks in HISTORIES:
            padded = drawn_case(name, "gradient", BATCH, reader, clicks)
            _, longest = clicks_of(padded)
            cut = drawn_case(name, "gradient", BATCH, reader, clicks, longest)
            ours, whole, equal = timed(padded.on_device(), padded.plain, cut.plain)
            rows.append((name, said, whole, equal, ours, whole / ours, equal / ours))
    columns = (
        *("model", "histories", "torch eager ms, padded to 50", "torch eager ms, cut to the longest"),
        *("graph on a device ms", "times faster than padded", "than cut"),
    )
    notes = (
        f"As above, batch {BATCH}. The device's session cuts histories padded to 50 to the longest.",
        "Padded is what a training loop of fixed shapes computes; cut is torch for the same columns as the graph.",
        "LSTUR and EBNR train with graphs of 50 steps whatever the history, so there is nothing to cut.",
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
        *("model", "kind", f"{SHORT} clicks: torch eager ms", "graph padded to 50 ms", "graph on a device ms"),
        *("50 clicks: graph ms", "bar ms", "products ms"),
    )
    notes = (f"A device cuts padding off, so {SHORT} clicks cost {SHORT}; the products are those of 50.",)
    return Table("A reader's vector, batch 1", columns, rows, notes, seeds=(SEED,))


def _kind(name: str) -> str:
    return RECURRENT if architectures()[name].recurrent else ATTENTION


class _Product(nn.Module):
    """x @ w: how fast each multiplies."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(*PRODUCT[1:]), requires_grad=False)

    def forward(self, clicks: Tensor) -> Tensor:
        return clicks @ self.w


def _product() -> Case:
    model = _Product()
    x = torch.randn(*PRODUCT[:2])
    spec = GraphSpec("score", "forward", (GraphInput("clicks", ("batch", PRODUCT[1])),), "product")
    feed: GraphInputs = {"p.w": model.w.numpy(), "clicks": x.numpy()}
    eager = in_torch(model, spec, [x])
    return Case(bytes_of(export_inference_graph(model, spec)), feed, eager, eager)


def products_ms(graph: bytes, run: Callable[[ort.InferenceSession], Callable[[], object]]) -> float:
    """Milliseconds of one run in the kernels of PRODUCTS by ONNX Runtime's own profiler, with what it fuses into them;
    of each kernel the fastest of PRODUCT_RUNS, as its clock runs on while others use the processor."""
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
    taken: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["args"].get("op_name") in PRODUCTS and "dur" in event:
            taken[event["name"]].append(event["dur"] / 1000)
    return sum(min(each) for name, each in taken.items() if name.endswith("_kernel_time"))
