"""Compares the news encoder in torch and ONNX Runtime (fp32, int8): titles per second, and how well vectors agree."""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnxruntime.quantization import QuantType, quantize_dynamic

from backend.embedding.embedder import (
    BATCH_SIZE,
    GRAPH_FILE,
    HEAD_FILE,
    TOKENIZER_FILE,
    OnnxEmbedder,
    length_buckets,
    load_embedder,
)
from backend.embedding.encoder_files import GRAPH, HASHES, TOKENIZER, hashes_of, read_description
from backend.embedding.initial_encoder import load_tokenizer
from backend.embedding.state_store import DESCRIPTION_FILE
from backend.embedding.torch_encoder import load_bert
from backend.embedding.weights import find_weights
from backend.settings import BackendSettings
from experiments.bench.bench_workspace import open_workspace
from experiments.datasets.mind import FOLDER, load_news
from experiments.records import Table
from models.news.plm import PlmNewsEncoder
from protocol.tensors import TensorSpec, unpack

TITLES = 2_000
RUNS = 3
TORCH_BATCH = 64
"""The batch size at which torch is fastest."""

Encode = Callable[[list[str]], NDArray[np.float32]]


def run(data: Path) -> list[Table]:
    """Return the bench's table. Raises DataMissing."""
    every = list(load_news(data / FOLDER / "train" / "news.tsv").titles)
    workspace = open_workspace("mind", every)
    sample = every[:: len(every) // TITLES][:TITLES]
    fp32 = load_embedder(workspace.settings)
    with tempfile.TemporaryDirectory() as scratch:
        engines: dict[str, Encode] = {
            "torch fp32 (reference)": _torch_encoder(workspace.settings),
            "ONNX Runtime fp32 (shipped)": fp32.encode,
            "ONNX Runtime int8 weights": _int8(workspace.settings, Path(scratch)).encode,
        }
        vectors, seconds = _in_turn(engines, sample)
    reference = vectors["torch fp32 (reference)"]
    rows = []
    for name, found in vectors.items():
        cosine = (found * reference).sum(axis=1)
        best = min(seconds[name])
        ratio = min(seconds["torch fp32 (reference)"]) / best
        rows.append((name, round(TITLES / best), f"{ratio:.2f}", f"{cosine.mean():.5f}", f"{cosine.min():.5f}"))
    columns = ("engine", "titles a second", "times torch", "mean cosine", "least cosine")
    note = (
        f"{TITLES:,} MIND titles, {workspace.settings.embed_threads} threads, batches of {BATCH_SIZE}, "
        f"torch {TORCH_BATCH}, best of {RUNS} runs. int8 is not shipped while its least cosine is below 0.999."
    )
    return [Table("News encoder", columns, rows, (note,))]


def _in_turn(
    engines: dict[str, Encode], sample: list[str]
) -> tuple[dict[str, NDArray[np.float32]], dict[str, list[float]]]:
    """Time the engines in alternation, so that a busy period of the machine affects all alike."""
    vectors: dict[str, NDArray[np.float32]] = {}
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for encode in engines.values():
        encode(sample[:BATCH_SIZE])
    for _ in range(RUNS):
        for name, encode in engines.items():
            started = time.perf_counter()
            vectors[name] = encode(sample)
            seconds[name].append(time.perf_counter() - started)
    return vectors, seconds


def _torch_encoder(settings: BackendSettings) -> Encode:
    torch.set_num_threads(settings.embed_threads)
    weights = find_weights(settings.bert, settings.bert_sha256)
    tokenizer = load_tokenizer(weights)
    encoder = PlmNewsEncoder(load_bert(weights)).eval()
    small = {name: value for name, value in encoder.named_parameters() if not name.startswith("bert.")}
    specs = {name: TensorSpec("float32", tuple(value.shape)) for name, value in small.items()}
    head = unpack((settings.encoder_dir / HEAD_FILE).read_bytes(), specs, limit_bytes=1 << 24)
    with torch.no_grad():
        for name, value in small.items():
            value.copy_(torch.from_numpy(head[name]))

    def encode(sample: list[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(sample), encoder.head.out_features), dtype=np.float32)
        with torch.inference_mode():
            for batch in length_buckets(tokenizer, sample, TORCH_BATCH):
                vectors[batch.rows] = encoder(torch.from_numpy(batch.pieces), torch.from_numpy(batch.mask)).numpy()
        return vectors

    return encode


def quantised(folder: Path, into: Path) -> None:
    """Write a copy of an encoder whose BERT matrices have eight bits.

    Activations are quantised at run time. The copy records its own files' hashes; otherwise it would count as damaged.
    """
    for file in folder.iterdir():
        if file.is_file() and file.name != GRAPH_FILE:
            (into / file.name).write_bytes(file.read_bytes())
    quantize_dynamic(
        onnx.load(folder / GRAPH_FILE),
        into / GRAPH_FILE,
        weight_type=QuantType.QUInt8,
        op_types_to_quantize=["MatMul", "Gemm"],
        # after a kernel of ONNX Runtime's own, types are not inferred
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
    )
    about = read_description(folder)
    about[HASHES] = hashes_of(into, {GRAPH: GRAPH_FILE, TOKENIZER: TOKENIZER_FILE})
    (into / DESCRIPTION_FILE).write_text(json.dumps(about), encoding="utf-8")


def _int8(settings: BackendSettings, scratch: Path) -> OnnxEmbedder:
    quantised(settings.encoder_dir, scratch)
    return OnnxEmbedder(scratch, threads=settings.embed_threads)
