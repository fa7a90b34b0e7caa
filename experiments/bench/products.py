"""How long a graph takes for its products of matrices alone: what no rewriting of the rest can save."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import onnxruntime as ort

PRODUCTS = frozenset({"Gemm", "FusedGemm", "MatMul", "FusedMatMul", "GRU"})
RUNS = 25


def products_ms(graph: bytes, run: Callable[[ort.InferenceSession], Callable[[], object]]) -> float:
    """Milliseconds of one run in the kernels of PRODUCTS by ONNX Runtime's own profiler, with what it fuses into them;
    of each kernel the fastest of RUNS, as its clock runs on while others use the processor."""
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        work = run(session)
        for _ in range(RUNS):
            work()
        events = json.loads(Path(session.end_profiling()).read_text())
    taken: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["args"].get("op_name") in PRODUCTS and "dur" in event:
            taken[event["name"]].append(event["dur"] / 1000)
    return sum(min(each) for name, each in taken.items() if name.endswith("_kernel_time"))
