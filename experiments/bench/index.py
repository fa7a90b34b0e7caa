"""Compares the serving index with exact search.

It measures recall@400 and search times with 6,000 and 100,000 articles.
"""

import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np

from backend.recall.indexes.faiss import FaissIndex
from backend.recall.indexes.index import ExactIndex, VectorIndex
from backend.recall.indexes.selection import IndexRecall as Gate
from backend.recall.indexes.selection import IndexRules, choose_index, overlap, tune
from experiments.bench.headlines import (
    CLUSTERS_SEED,
    HEADLINES,
    MEANS_SEED,
    Floats,
    basis_of,
    clustered_vectors,
    headline_vectors,
    interest_vectors,
)
from experiments.records import DataMissing, Table

SMALL, DEPTH, CHANNELS, REQUESTS = 6_000, 400, 5, 60


def run(data: Path) -> list[Table]:
    """Return the table. Without the headlines it has only the synthetic rows and says so."""
    faiss.omp_set_num_threads(1)
    columns = ("vectors", "articles", "index", "gate", "recall@400", "p50 ms", "p95 ms", "flat p50 ms", "build s")
    synthetic = clustered_vectors(HEADLINES)
    rows = _rows("clustered, synthetic", synthetic[:SMALL]) + _rows("clustered, synthetic", synthetic)
    notes = [
        f"{REQUESTS} requests of {CHANNELS} interest vectors, from reports with the paper's noise; one thread. flat: "
        "FAISS IndexFlatIP."
    ]
    try:
        real = headline_vectors(data)
        rows += _rows("headlines, BERT", real[:SMALL]) + _rows("headlines, BERT", real)
    except DataMissing as missing:
        notes.append(f"no rows of real headlines: {missing}")
    return [Table("Index", columns, rows, tuple(notes), (CLUSTERS_SEED, MEANS_SEED))]


def _rows(name: str, vectors: Floats) -> list[tuple[str | int | float | None, ...]]:
    """Return the rows of the shipped index at this size; above the limit of exact search also of plain IVF with SQ8."""
    keys = np.arange(len(vectors), dtype=np.int64)
    basis = basis_of(vectors)
    requests = [interest_vectors(basis, CHANNELS, seed) for seed in range(REQUESTS)]
    truth = np.concatenate([ExactIndex.over(keys, vectors).search(each, DEPTH)[1] for each in requests])
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    rules = IndexRules()
    rows: list[tuple[str | int | float | None, ...]] = []

    def measure(index: VectorIndex, gate_recall: float | None, verdict: str, build_sec: float) -> None:
        found = np.concatenate([index.search(each, DEPTH)[1] for each in requests])
        times, flat_times = _in_turn(
            requests, lambda each: index.search(each, DEPTH), lambda each: flat.search(each, DEPTH)
        )
        gate = verdict if gate_recall is None else f"{verdict} {gate_recall:.4f}"
        rows.append(
            (
                name,
                len(vectors),
                index.kind,
                gate,
                round(overlap(truth, found), 4),
                float(np.median(times)),
                float(np.percentile(times, 95)),
                float(np.median(flat_times)),
                round(build_sec, 1),
            )
        )

    started = time.perf_counter()
    index, status = choose_index(keys, vectors, exact_limit=rules.exact_limit, threads=1)
    built = time.perf_counter() - started
    measure(index, status.recall_at_400, "exact" if index.exact else "passed", built)
    if len(vectors) > rules.exact_limit and not index.kind.startswith("IVF"):
        started = time.perf_counter()
        inverted = FaissIndex.inverted(keys, vectors, storage="SQ8", threads=1)
        built = time.perf_counter() - started
        measure(inverted, tune(inverted, Gate(keys, vectors)), "refused", built)
    return rows


def _in_turn(
    requests: list[Floats], first: Callable[[Floats], object], second: Callable[[Floats], object]
) -> tuple[list[float], list[float]]:
    """Return milliseconds per request of both, measured in alternation, so that a busy machine slows both alike."""
    times: tuple[list[float], list[float]] = ([], [])
    for each in requests:
        for search, into in zip((first, second), times, strict=True):
            started = time.perf_counter()
            search(each)
            into.append((time.perf_counter() - started) * 1_000)
    return times
