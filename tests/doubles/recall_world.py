"""A server with real parts in a temporary folder, without torch.

It has a pool of clustered articles and a release with 30 basic interests.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.recall.indexes.store import INDEX_FOLDER, IndexStore
from backend.releases.blobs import ReleaseDraft
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from protocol.releases import Codebook, ModelEntry, RecallProtocol, ReleaseManifest
from protocol.tensors import pack
from tests.doubles.migrated import migrated

ENCODER = "test-encoder"
DIMENSIONS = 256
BASIS_SIZE = 30
CODEBOOKS = {16: 4.0, 64: 8.0}


def clustered_vectors(count: int, *, clusters: int = 60, dimensions: int = DIMENSIONS, seed: int = 3) -> NDArray[Any]:
    """Unit vectors [count, D] around random centres."""
    draw = np.random.default_rng(seed)
    middles = draw.normal(size=(clusters, dimensions))
    vectors = middles[draw.integers(clusters, size=count)] + 0.5 * draw.normal(size=(count, dimensions))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def settings_in(folder: Path, **changes: Any) -> BackendSettings:
    """Settings that keep everything in `folder` and poll often."""
    return BackendSettings(**{"data_dir": folder, "pool_poll_sec": 0.05, "shared_answers_sec": 0, **changes})


def indexes_in(settings: BackendSettings) -> IndexStore:
    """Return where the server with these settings keeps its index."""
    return IndexStore(settings.open_storage().under(INDEX_FOLDER))


def items(count: int, *, now: datetime | None = None, first: int = 0) -> list[NewsItem]:
    """Articles whose titles are too different to count as near-duplicates."""
    now = now or datetime.now(UTC)
    draw = np.random.default_rng(first + 11)
    return [
        NewsItem(
            id=f"n{row}",
            title=" ".join(f"w{word}" for word in draw.integers(1_000_000, size=9)),
            abstract=f'He said "{row}" \N{SNOWMAN} & left \\ the <room>.',
            body=f"First paragraph of {row}.\n\nSecond paragraph.",
            publisher=f"Paper {row % 5}",
            section=f"section{row % 7}",
            topic=f"topic{row % 21}",
            story=f"story{row % 3}" if row % 10 == 0 else None,
            published_at=now - timedelta(minutes=7 * (row % 900) + 1),
            weight=(row % 11) / 10,
        )
        for row in range(first, first + count)
    ]


def fill(settings: BackendSettings, count: int = 300, *, encoder: str = ENCODER) -> NDArray[Any]:
    """Put `count` articles with vectors into the pool of `settings`; return the vectors."""
    engine = _engine(settings)
    pool = NewsPool(engine)
    news = items(count)
    pool.add(news, source="test")
    vectors = clustered_vectors(count)
    pool.store_vectors(encoder, [item.id for item in news], vectors)
    engine.dispose()
    return vectors


def publish(settings: BackendSettings, *, encoder: str = ENCODER, seed: int = 5) -> ReleaseManifest:
    """Publish another release, with random basis values [30, D]; graphs are placeholder bytes."""
    engine = _engine(settings)
    store = ReleaseStore.open(engine, settings)
    manifest = store.commit(recall_draft(store, encoder=encoder, seed=seed), note="test")
    engine.dispose()
    return manifest


def recall_draft(store: ReleaseStore, *, encoder: str = ENCODER, seed: int = 5) -> ReleaseDraft:
    """A release whose recall model has the parts that the server needs."""
    graph = store.add_blob(b"no graph: these tests never run it")
    values = clustered_vectors(BASIS_SIZE, clusters=BASIS_SIZE, seed=seed)
    recall = ModelEntry(
        architecture="basis",
        role="recall",
        graphs={"context": graph, "decompose": graph},
        weights=store.add_blob(pack({"basis_keys": values, "basis_values": values})),
    )
    return ReleaseDraft(
        encoder=encoder,
        dimensions=DIMENSIONS,
        opset=18,
        recall=RecallProtocol(
            basis_size=BASIS_SIZE,
            channels_limit=5,
            cluster_distance=1.0,
            score_clip=0.2,
            score_noise=1.2,
            codebooks=tuple(
                Codebook(
                    size=size,
                    epsilon=epsilon,
                    prototypes=store.add_blob(
                        pack({"prototypes": clustered_vectors(size, clusters=size, seed=seed + size)})
                    ),
                )
                for size, epsilon in CODEBOOKS.items()
            ),
            pool_codes=True,
        ),
        models={
            "recall": recall,
            "ranker.cosine": ModelEntry(architecture="cosine", role="ranker", graphs={"score": graph}),
        },
        default_ranker="ranker.cosine",
    )


def report(channels: int = 3, *, width: int = BASIS_SIZE, seed: int = 1) -> dict[str, Any]:
    """A report as parsed from JSON."""
    draw = np.random.default_rng(seed)
    return {
        "kind": "basis_laplace",
        "scores": draw.laplace(0, 1.2, size=(channels, width)).round(6).tolist(),
        "counts": [int(count) for count in draw.integers(1, 12, size=channels)],
    }


def _engine(settings: BackendSettings) -> Engine:
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return migrated(settings.database_url)


def log_probabilities(
    prototypes: NDArray[np.float32], vectors: NDArray[np.float32], log_popularity: NDArray[np.float32], sharpness: float
) -> NDArray[np.float64]:
    """log P(i | k) [K, n] with P(i | k) ~ pop(i) exp(s <v_k, d_i>), over a pool in memory.

    By this likelihood basic interests are trained (`backend/federation/strategies/reported_basis.py`).
    """
    scores = sharpness * (prototypes @ vectors.T).astype(np.float64) + log_popularity  # [K, n]
    return np.asarray(scores - np.logaddexp.reduce(scores, axis=1)[:, None], dtype=np.float64)
