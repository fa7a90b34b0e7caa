"""Measures POST /v1/recall with 100,000 articles over loopback HTTP.

It reports server times by stage, and the search next to bare FAISS. Reports by code are measured with cached lists and
with lists that are made on request. The server is the real application on a free port, with a pool of headlines and a
release of placeholder graphs.
"""

import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import faiss
import httpx
import numpy as np
import uvicorn

from backend.app import create_app
from backend.composition import Services, build_services
from backend.recall.catalogue import Catalogue, build_catalogue
from backend.recall.indexes.faiss import FaissIndex
from backend.recall.indexes.fastscan import ScanIndex
from backend.recall.indexes.selection import IndexRules, choose_index
from backend.recall.indexes.store import INDEX_FOLDER, IndexStore
from backend.releases.blobs import ReleaseDraft
from backend.releases.codebooks import CODEBOOKS, first_codebooks
from backend.releases.store import ReleaseStore
from backend.settings import load_settings
from experiments.bench.headlines import (
    BASIS_SIZE,
    SCORE_CLIP,
    SCORE_NOISE,
    Floats,
    Headline,
    HeadlinePool,
    basis_of,
    bench_now,
    headline_vectors,
    headlines,
    interest_vectors,
    noisy_scores,
)
from experiments.records import Cell, Table
from protocol.ids import short_release
from protocol.recall import CHANNELS_LIMIT, CodeReport, NoReport, RecallAnswer, RecallRequest
from protocol.releases import ModelEntry, RecallProtocol
from protocol.server_timing import parse_server_timing
from protocol.tensors import pack

RELEASE = "r1"
ENCODER = "bench"
SAMPLE = 20_000
"""Number of articles from which the bench's prototypes are made."""


@dataclass(frozen=True)
class RecallServer:
    """An application that answers at `url` and has not made any codebook's lists yet."""

    url: str
    services: Services
    catalogue: Catalogue
    basis: Floats


@contextmanager
def recall_server(news: Sequence[Headline], vectors: Floats) -> Iterator[RecallServer]:
    """Serve these articles with their vectors [n, D] until the block ends."""
    basis = basis_of(vectors)
    with tempfile.TemporaryDirectory() as scratch:
        # a bench is one address that sends more requests than any reader
        settings = load_settings(data_dir=Path(scratch), requests_per_minute=0, requests_per_minute_in_all=0)
        services = build_services(settings)
        try:
            publish(services.releases, basis, vectors)
            services.served.refresh()
            pool = HeadlinePool(news, vectors, ENCODER, bench_now())
            kept = IndexStore(services.storage.under(INDEX_FOLDER), settings.index_dir)
            catalogue = build_catalogue(pool, ENCODER, bench_now(), kept, rules=IndexRules().under(*basis.shape))
            services.live.swap(catalogue)
            with _listening(services) as url:
                yield RecallServer(url, services, catalogue, basis)
        finally:
            services.close()


def publish(store: ReleaseStore, basis: Floats, vectors: Floats) -> None:
    """Publish a release with this basis; its graphs are placeholders, since the server never runs them."""
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
        channels_limit=CHANNELS_LIMIT,
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
def _listening(services: Services) -> Iterator[str]:
    """Run the real application on a free port, without background work, which would need a pool."""
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


LIMIT, REQUESTS, WARM_UP = 400, 300, 20
SHORT = short_release(RELEASE)
COUNTS = (17, 12, 9, 7, 5)
COLD_REQUESTS = 5
SEED = 11
"""The seed of the requested codes; a report of scores uses its number as its seed."""
CODE_BAR_MS, SEARCH_BAR, TOTAL_BAR_MS = 2.0, 1.3, 10.0
COMPOSE, SEARCH = "aggregate", "search"
COLUMNS = ("what", "p50 ms", "p95 ms", "p99 ms")


def run(data: Path) -> list[Table]:
    """Return the tables. Raises DataMissing without the headlines: an endpoint at scale needs real cards."""
    vectors = headline_vectors(data)
    news = headlines(data, len(vectors))
    return measure(news, vectors[: len(news)])


def measure(news: Sequence[Headline], vectors: Floats, requests: int = REQUESTS) -> list[Table]:
    """Return the tables for a pool of these articles and vectors [n, D]."""
    with recall_server(news, vectors) as server:
        return [_by_basis(server, requests), _by_code(server, requests)]


def _by_basis(server: RecallServer, requests: int) -> Table:
    bare = _bare(server.catalogue)
    bare_ms: list[float] = []
    round_trips: list[float] = []
    with httpx.Client(base_url=server.url) as client:
        for seed in range(requests + WARM_UP):
            report = {
                "kind": "basis_laplace",
                "scores": noisy_scores(CHANNELS_LIMIT, seed).tolist(),
                "counts": COUNTS,
            }
            queries = interest_vectors(server.basis, CHANNELS_LIMIT, seed)
            started = time.perf_counter()
            response = client.post("/v1/recall", json={"release": SHORT, "limit": LIMIT, "report": report})
            response.raise_for_status()
            round_trips.append((time.perf_counter() - started) * 1_000)
            started = time.perf_counter()
            bare(queries)
            bare_ms.append((time.perf_counter() - started) * 1_000)
    assert len(RecallAnswer.model_validate_json(response.content).candidates) == min(LIMIT, len(server.catalogue))
    logged = server.services.latency.last("recall", requests)
    searches = [entry[SEARCH] for entry in logged]
    rows: list[tuple[Cell, ...]] = [
        *_stages(logged),
        ("bare FAISS search of the same queries", *_figures(bare_ms[WARM_UP:])),
        ("client: round trip over loopback", *_figures(round_trips[WARM_UP:])),
    ]
    ratio = float(np.median(searches) / np.median(bare_ms[WARM_UP:]))
    mean = float(np.mean(searches) / np.mean(bare_ms[WARM_UP:]))
    total = _figures([entry["total"] for entry in logged])[1]
    notes = (
        f"{len(server.catalogue):,} headlines, {server.catalogue.status.kind}, C={CHANNELS_LIMIT}, R={LIMIT}, "
        f"{requests} requests in sequence, {len(response.content):,} bytes an answer.",
        f"Search stage / {_compared(server.catalogue)}: {ratio:.2f} by medians, {mean:.2f} by means; bar "
        f"{SEARCH_BAR:g}.",
        f"Bar: 'total', p95 {TOTAL_BAR_MS:g} ms; {'met' if total <= TOTAL_BAR_MS else 'missed'} ({total:.1f} ms).",
    )
    return Table("Recall endpoint", COLUMNS, rows, notes)


def _compared(catalogue: Catalogue) -> str:
    """Name the reference for the search stage: an index of the same kind, except for a scan of the basis."""
    return "bare FAISS over whole vectors" if catalogue.by_basis else "bare FAISS"


def _bare(catalogue: Catalogue) -> Callable[[Floats], object]:
    """Return FAISS's own search for the same queries, by the index that the gate chooses over full-precision
    vectors.
    """
    index = catalogue.index
    if catalogue.by_basis:
        index, _ = choose_index(catalogue.keys, catalogue.vectors[:], exact_limit=IndexRules().exact_limit, threads=1)
    faiss.omp_set_num_threads(1)
    if isinstance(index, ScanIndex):
        wider = faiss.IndexRefineSearchParameters(k_factor=float(index.effort))  # type: ignore[call-arg]
        return lambda queries: index.bare.search(queries, LIMIT, params=wider)
    if isinstance(index, FaissIndex):
        return lambda queries: index.bare.search(queries, LIMIT)
    flat = faiss.IndexFlatIP(catalogue.vectors.shape[1])
    flat.add(catalogue.vectors[:])
    return lambda queries: flat.search(queries, LIMIT)


def _by_code(server: RecallServer, requests: int) -> Table:
    """Return rows for the first requests of each codebook, which make its lists, and for requests with cached lists."""
    rows: list[tuple[Cell, ...]] = []
    slowest = 0.0
    with httpx.Client(base_url=server.url) as client:
        for size in CODEBOOKS:
            cold = [_composed_and_found(_first_asked(client, server, size)) for _ in range(COLD_REQUESTS)]
            rows.append((f"K={size}, first request: compose and search", *_figures(cold)))
            dice = np.random.default_rng(SEED)
            round_trips = [_ask(client, size, int(dice.integers(size)))[1] for _ in range(requests + WARM_UP)]
            logged = server.services.latency.last("recall", requests)
            found = _figures([_composed_and_found(entry) for entry in logged])
            slowest = max(slowest, found[1])
            rows.append((f"K={size}, cached lists: compose and search", *found))
            rows += [(f"K={size}, cached lists, {name}", *times) for name, *times in _stages(logged)]
            rows.append((f"K={size}, cached lists, client: round trip over loopback", *_figures(round_trips[WARM_UP:])))
    verdict = "met" if slowest <= CODE_BAR_MS else "missed"
    notes = (
        f"{len(server.catalogue):,} headlines, R={LIMIT}; {requests} requests a codebook with cached lists, "
        f"{COLD_REQUESTS} first ones. A server caches the lists before it serves a catalogue.",
        f"Bar: compose and search, cached lists, {CODE_BAR_MS:g} ms; {verdict} (p95 {slowest:.3f} ms).",
    )
    return Table("Recall endpoint, reports by code", COLUMNS, rows, notes, (SEED,))


def _first_asked(client: httpx.Client, server: RecallServer, size: int) -> dict[str, float]:
    """Return the stages of a request that finds no lists: they are cached by catalogue, so an equal new catalogue has
    none.
    """
    server.services.live.swap(replace(server.catalogue))
    client.post("/v1/recall", json=RecallRequest(release=SHORT, limit=LIMIT, report=NoReport()).model_dump())
    return _ask(client, size, 0)[0]


def _ask(client: httpx.Client, size: int, code: int) -> tuple[dict[str, float], float]:
    """Send one request by this code; return its Server-Timing and round trip in ms."""
    request = RecallRequest(release=SHORT, limit=LIMIT, report=CodeReport(codebook=size, code=code)).model_dump()
    started = time.perf_counter()
    answer = client.post("/v1/recall", json=request, timeout=120.0)
    answer.raise_for_status()
    return parse_server_timing(answer.headers["server-timing"]), (time.perf_counter() - started) * 1_000


def _composed_and_found(stages: dict[str, float]) -> float:
    return stages[COMPOSE] + stages[SEARCH]


def _stages(logged: Sequence[dict[str, float]]) -> list[tuple[Cell, ...]]:
    return [(f"server: {stage}", *_figures([entry[stage] for entry in logged])) for stage in logged[-1]]


def _figures(times: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(float(value), 3) for value in np.percentile(times, (50, 95, 99)))
