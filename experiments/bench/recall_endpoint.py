"""POST /v1/recall at 100,000 news over loopback HTTP: server-side times by stage, and search against bare FAISS.

The same for reports by code, whose lists are made when the pool is.
"""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import faiss
import httpx
import numpy as np
import uvicorn

from backend.app import create_app
from backend.composition import Services, build_services
from backend.recall.catalogue import Catalogue, build_catalogue
from backend.recall.faiss_index import FaissIndex
from backend.recall.scan_index import ScanIndex
from backend.releases.codebooks import first_codebooks
from backend.releases.store import ReleaseDraft, ReleaseStore
from backend.settings import load_settings
from device_app.wire.recall import RecallAnswer
from device_app.wire.releases import ModelEntry, RecallProtocol
from device_app.wire.tensors import pack
from device_app.wire.timing import parse_server_timing
from experiments.bench.headlines import (
    BASIS_SIZE,
    SCORE_CLIP,
    SCORE_NOISE,
    Floats,
    HeadlinePool,
    basis_of,
    bench_now,
    headline_vectors,
    headlines,
    interest_vectors,
    noisy_scores,
)
from experiments.bench.table import Table

CHANNELS, LIMIT, REQUESTS, WARM_UP = 5, 400, 300, 20
ENCODER = "bench"
COUNTS = (17, 12, 9, 7, 5)
CODES = 16
SAMPLE = 20_000
"""News that the bench's prototypes are topics of."""


def run(data: Path) -> list[Table]:
    """The table. Raises DataMissing without the headlines: an endpoint at scale is measured on real cards."""
    vectors = headline_vectors(data)
    news = headlines(data, len(vectors))
    vectors, basis = vectors[: len(news)], basis_of(vectors)
    with tempfile.TemporaryDirectory() as scratch:
        settings = load_settings(data_dir=Path(scratch))
        services = build_services(settings)
        try:
            _publish(services.releases, basis, vectors)
            services.served.refresh()
            pool = HeadlinePool(news, vectors, ENCODER, bench_now())
            catalogue = build_catalogue(pool, ENCODER, bench_now(), settings.index_dir)
            services.desk.prepare(catalogue)
            services.live.swap(catalogue)
            with _served(services) as url:
                return [_measure(url, services, catalogue, basis), _measure_codes(url, services, catalogue)]
        finally:
            services.close()


def _measure(url: str, services: Services, catalogue: Catalogue, basis: Floats) -> Table:
    index = catalogue.index
    assert isinstance(index, FaissIndex | ScanIndex)
    wider = {}
    if isinstance(index, ScanIndex):
        wider["params"] = faiss.IndexRefineSearchParameters(k_factor=float(index.effort))  # type: ignore[call-arg]
    bare_ms: list[float] = []
    searches: list[float] = []
    round_trips: list[float] = []
    faiss.omp_set_num_threads(1)
    with httpx.Client(base_url=url) as client:
        for seed in range(REQUESTS + WARM_UP):
            report = {"kind": "basis_laplace", "scores": noisy_scores(CHANNELS, seed).tolist(), "counts": COUNTS}
            body = {"release": "r1", "limit": LIMIT, "report": report}
            queries = interest_vectors(basis, CHANNELS, seed)
            started = time.perf_counter()
            response = client.post("/v1/recall", json=body)
            round_trip = (time.perf_counter() - started) * 1_000
            response.raise_for_status()
            started = time.perf_counter()
            index.bare.search(queries, LIMIT, **wider)
            bare = (time.perf_counter() - started) * 1_000
            if seed >= WARM_UP:
                bare_ms.append(bare)
                round_trips.append(round_trip)
                searches.append(parse_server_timing(response.headers["server-timing"])["search"])
    assert len(RecallAnswer.model_validate_json(response.content).candidates) == LIMIT
    requests = services.latency.last("recall", REQUESTS)
    rows: list[tuple[str | int | float | None, ...]] = [
        (f"server: {stage}", *_figures([entry[stage] for entry in requests])) for stage in requests[-1]
    ]
    rows.append(("bare FAISS search of the same queries", *_figures(bare_ms)))
    rows.append(("client: round trip over loopback", *_figures(round_trips)))
    ratio = float(np.median(searches) / np.median(bare_ms))
    mean = float(np.mean(searches) / np.mean(bare_ms))
    notes = (
        f"{len(catalogue):,} headlines, {catalogue.status.kind}, C={CHANNELS}, R={LIMIT}, {REQUESTS} requests one "
        f"after the other, {len(response.content):,} bytes an answer; 'total' is from body read to answer ready.",
        f"search stage / bare FAISS, taken in turn: {ratio:.2f} (medians), {mean:.2f} (means); bar 1.5.",
    )
    return Table("Recall endpoint", ("what", "p50 ms", "p95 ms", "p99 ms"), rows, notes)


def _measure_codes(url: str, services: Services, catalogue: Catalogue) -> Table:
    """Reports by code: composing is a look at Bayes' rule, searching a mixture of lists that are there."""
    rng = np.random.default_rng(11)
    round_trips: list[float] = []
    with httpx.Client(base_url=url) as client:
        for turn in range(REQUESTS + WARM_UP):
            report = {"kind": "code", "codebook": CODES, "code": int(rng.integers(CODES))}
            started = time.perf_counter()
            response = client.post("/v1/recall", json={"release": "r1", "limit": LIMIT, "report": report})
            response.raise_for_status()
            if turn >= WARM_UP:
                round_trips.append((time.perf_counter() - started) * 1_000)
    requests = services.latency.last("recall", REQUESTS)
    both = [entry["compose"] + entry["search"] for entry in requests]
    rows: list[tuple[str | int | float | None, ...]] = [
        (f"server: {stage}", *_figures([entry[stage] for entry in requests])) for stage in requests[-1]
    ]
    rows.append(("server: compose and search", *_figures(both)))
    rows.append(("client: round trip over loopback", *_figures(round_trips)))
    notes = (f"{len(catalogue):,} headlines, K={CODES}, R={LIMIT}; lists are kept by release and pool. Bar: 2 ms.",)
    return Table("Recall endpoint, reports by code", ("what", "p50 ms", "p95 ms", "p99 ms"), rows, notes)


def _figures(times: list[float]) -> tuple[float, ...]:
    return tuple(round(float(value), 3) for value in np.percentile(times, (50, 95, 99)))


def _publish(store: ReleaseStore, basis: Floats, vectors: Floats) -> None:
    """A release with this basis; its graphs are placeholders, since the server never runs them."""
    graph = store.add_blob(b"a server runs no graph")
    weights = store.add_blob(pack({"basis_keys": basis, "basis_values": basis}))
    models = {
        "recall": ModelEntry(
            architecture="basis", role="recall", graphs={"context": graph, "decompose": graph}, weights=weights
        ),
        "ranker.cosine": ModelEntry(architecture="cosine", role="ranker", graphs={"score": graph}),
    }
    protocol = RecallProtocol(
        basis_size=BASIS_SIZE,
        channels_limit=CHANNELS,
        cluster_distance=1.0,
        score_clip=SCORE_CLIP,
        score_noise=SCORE_NOISE,
        codebooks=first_codebooks(store, vectors[:SAMPLE], seed=7),
    )
    store.commit(
        ReleaseDraft(
            encoder=ENCODER,
            dimensions=basis.shape[1],
            opset=18,
            recall=protocol,
            models=models,
            default_ranker="ranker.cosine",
        ),
        note="bench",
    )


@contextmanager
def _served(services: Services) -> Iterator[str]:
    """The real application on a free port; without its background work, which would look for the missing pool."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(services=services), lifespan="off", access_log=False, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
