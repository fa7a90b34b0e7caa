"""100,000 real headlines as a pool: rows, vectors (computed once, in minutes), and interest vectors as from reports."""

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from backend.news.pool import NEWS_LIFETIME
from backend.news.pool_reading import NewsBlock, PoolReading, PoolRow
from backend.recall.decode import aggregate
from experiments.bench.bench_workspace import open_workspace
from experiments.records import DataMissing

HEADLINES = 100_000
VECTORS_VARIABLE = "OWNFEED_BENCH_VECTORS"
BASIS_SIZE, SCORE_CLIP, SCORE_NOISE = 30, 0.2, 1.2
CLUSTERS_SEED, MEANS_SEED = 3, 1
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Headline:
    """One line of headlines.tsv."""

    publisher: str
    section: str
    title: str
    abstract: str


def headlines(data: Path, count: int = HEADLINES) -> list[Headline]:
    """Return the first `count` headlines with distinct titles, in the file's order. Raises DataMissing."""
    path = data / "headlines" / "headlines.tsv"
    if not path.is_file():
        raise DataMissing(f"research data: {path} does not exist; name the folder with --data or OWNFEED_DATA")
    found: dict[str, Headline] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            title = (row["title"] or "").strip()[:1_000]
            if title and title not in found:
                abstract = (row["abstract"] or "")[:5_000]
                found[title] = Headline(row["source"][:120], row["category"][:80] or "news", title, abstract)
            if len(found) == count:
                break
    return list(found.values())


def headline_vectors(data: Path) -> Floats:
    """Return the headlines' vectors by the shipped encoder, float32 [n, 256], from a cache if there is one.

    OWNFEED_BENCH_VECTORS may name a .npy of unit vectors to use instead. Raises DataMissing.
    """
    if given := os.environ.get(VECTORS_VARIABLE):
        return np.asarray(np.load(given), dtype=np.float32)
    return open_workspace("headlines", [each.title for each in headlines(data)]).vectors


def clustered_vectors(count: int, *, dimensions: int = 256, clusters: int = 400, seed: int = CLUSTERS_SEED) -> Floats:
    """Return synthetic unit vectors around random centres."""
    draw = np.random.default_rng(seed)
    middles = draw.standard_normal((clusters, dimensions), dtype=np.float32)
    vectors = middles[draw.integers(clusters, size=count)]
    vectors += np.float32(0.5) * draw.standard_normal((count, dimensions), dtype=np.float32)
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def basis_of(vectors: Floats) -> Floats:
    """Return 30 k-means centroids [30, D]: the basis values of a first release."""
    means = faiss.Kmeans(vectors.shape[1], BASIS_SIZE, niter=10, seed=MEANS_SEED)
    means.train(np.ascontiguousarray(vectors[:: max(len(vectors) // 20_000, 1)]))
    assert means.centroids is not None
    basis: Floats = means.centroids
    return basis


def noisy_scores(channels: int, seed: int) -> NDArray[np.float64]:
    """Return scores [channels, 30] with the paper's noise, as a device sends them; seeded, for benches only."""
    draw = np.random.default_rng(seed)
    shape = (channels, BASIS_SIZE)
    return np.asarray(draw.uniform(-SCORE_CLIP, SCORE_CLIP, shape) + draw.laplace(0, SCORE_NOISE, shape))


def interest_vectors(basis: Floats, channels: int, seed: int) -> Floats:
    """Return interest vectors r^_c [channels, D], as the server computes them from such a report."""
    return aggregate(noisy_scores(channels, seed), basis)


class HeadlinePool:
    """A pool for `build_catalogue` without a database."""

    def __init__(self, news: Sequence[Headline], vectors: Floats, encoder: str, now: datetime) -> None:
        self._encoder, self._vectors = encoder, vectors
        self._rows = [
            PoolRow(
                number=number,
                id=f"h{number}",
                title=each.title,
                abstract=each.abstract,
                url=f"https://news.example/{number}",
                publisher=each.publisher,
                section=each.section,
                topic=each.section,
                story=None,
                published_at=now - timedelta(seconds=20 * number),
                weight=0.5,
                duplicate_of=None,
            )
            for number, each in enumerate(news)
        ]

    def version(self) -> int:
        """Always 1."""
        return 1

    @contextmanager
    def reading(self, encoder: str, now: datetime, since: int | None = None) -> Iterator[PoolReading]:
        """Return every headline, in one block."""
        coded: list[bytes | None] = [vector.tobytes() for vector in self._vectors]
        yield PoolReading(1, now - NEWS_LIFETIME, None, iter([NewsBlock(self._rows, coded)]), len(coded))


def bench_now() -> datetime:
    """Return the time relative to which a bench's articles are dated."""
    return datetime.now(UTC)
