"""Titles a second through the news encoder, here and on one and two nodes of a Ray cluster, one thread each.

All nodes are processes of this machine, so each needs a core. Vectors must be equal to the bit.
"""

from __future__ import annotations

import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.embedding.batch_executor import HERE, ExecutorSettings
from backend.embedding.embedder import BATCH_SIZE, OnnxEmbedder
from backend.embedding.initial_encoder import make_initial_encoder
from backend.settings import load_settings
from experiments.datasets.mind import FOLDER, load_news
from experiments.records import Cell, DataMissing, Table

TITLES, WARM_UP, RUNS = 2_048, 512, 3


def run(data: Path) -> list[Table]:
    """Return the table.

    Raises DataMissing, also if Ray isn't installed; RuntimeError if vectors differ.
    """
    if find_spec("ray") is None:
        raise DataMissing("Ray isn't installed: pip install -c constraints.txt '.[ray]'")
    from experiments.bench.ray_nodes import ray_nodes

    every = list(load_news(data / FOLDER / "train" / "news.tsv").titles)
    sample = every[:: len(every) // TITLES][:TITLES]
    found: dict[str, tuple[float, NDArray[np.float32]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        settings = load_settings(data_dir=Path(scratch))
        make_initial_encoder(settings, lambda: sample)
        found["this process"] = _timed(settings.encoder_dir, HERE, sample)
        for nodes in (1, 2):
            with ray_nodes(nodes) as address:
                name = f"{nodes} node{'s' if nodes > 1 else ''}"
                found[name] = _timed(settings.encoder_dir, ExecutorSettings(cluster=address), sample)
    reference = found["this process"][1].tobytes()
    if any(vectors.tobytes() != reference for _, vectors in found.values()):
        raise RuntimeError("the nodes' vectors are not this process's to the bit")
    one = found["1 node"][0]
    rows: list[tuple[Cell, ...]] = [
        (name, round(seconds, 2), round(TITLES / seconds), f"{one / seconds:.2f}")
        for name, (seconds, _) in found.items()
    ]
    note = (
        f"{TITLES:,} MIND titles in batches of {BATCH_SIZE}, one thread each, best of {RUNS} runs on nodes that "
        "have the encoder; the same vectors to the bit."
    )
    return [Table("News encoder on a Ray cluster", ("who", "s", "titles a second", "times one node"), rows, (note,))]


def _timed(encoder_dir: Path, executor: ExecutorSettings, sample: list[str]) -> tuple[float, NDArray[np.float32]]:
    embedder = OnnxEmbedder(encoder_dir, threads=1, executor=executor)
    embedder.encode(sample[:WARM_UP])
    best = float("inf")
    for _ in range(RUNS):
        started = time.perf_counter()
        vectors = embedder.encode(sample)
        best = min(best, time.perf_counter() - started)
    return best, vectors
