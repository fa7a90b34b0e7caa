"""Serves a pool of headlines with the real application on a free port.

Its release has placeholder graphs.
"""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from backend.app import create_app
from backend.composition import Services, build_services
from backend.recall.catalogue import Catalogue, build_catalogue
from backend.recall.indexes.store import INDEX_FOLDER, IndexStore
from backend.recall.indexing import IndexRules
from backend.releases.blobs import ReleaseDraft
from backend.releases.codebooks import first_codebooks
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
)
from protocol.recall import CHANNELS_LIMIT
from protocol.releases import ModelEntry, RecallProtocol
from protocol.tensors import pack

RELEASE = "r1"
ENCODER = "bench"
SAMPLE = 20_000
"""Number of articles from which the bench's prototypes are made."""


@dataclass(frozen=True)
class RecallServer:
    """An application that answers at `url`; it has made no list of a codebook yet."""

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
