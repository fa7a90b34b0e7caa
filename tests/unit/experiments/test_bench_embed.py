"""The bench of the news encoder: the embedder loads its quantised copy. Oracle: the embedder's own check."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from backend.embedding.embedder import GRAPH_FILE, TOKENIZER_FILE
from backend.embedding.encoder_files import GRAPH, TOKENIZER, check_file, read_description
from backend.embedding.state_store import DESCRIPTION_FILE
from experiments.bench.embed import quantised


def an_encoder(folder: Path) -> Path:
    """A folder whose graph is one product with a constant matrix."""
    folder.mkdir()
    matrix = np.random.default_rng(3).normal(size=(8, 8)).astype(np.float32)
    rows = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 8]) for name in ("x", "y")]
    node = helper.make_node("MatMul", ["x", "matrix"], ["y"])
    graph = helper.make_graph([node], "g", rows[:1], rows[1:], [numpy_helper.from_array(matrix, "matrix")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / GRAPH_FILE)
    (folder / TOKENIZER_FILE).write_text("{}")
    hashes = {
        kind: sha256((folder / name).read_bytes()).hexdigest()
        for kind, name in ((GRAPH, GRAPH_FILE), (TOKENIZER, TOKENIZER_FILE))
    }
    about = {"digest": "e", "dimensions": 8, "parameters": {}, "sha256": hashes}
    (folder / DESCRIPTION_FILE).write_text(json.dumps(about))
    return folder


def test_quantised_encoder_copy_states_its_own_hash(tmp_path: Path) -> None:
    """Regression: the copy stated the whole encoder's hash for its graph, and the bench ended with "is damaged"."""
    copy = tmp_path / "copy"
    copy.mkdir()
    quantised(an_encoder(tmp_path / "whole"), copy)
    about = read_description(copy)
    for kind, name in ((GRAPH, GRAPH_FILE), (TOKENIZER, TOKENIZER_FILE)):
        check_file(copy / name, about, kind)
    (weights,) = (each for each in onnx.load(copy / GRAPH_FILE).graph.initializer if each.dims == [8, 8])
    assert weights.data_type == TensorProto.UINT8
