"""The basic interests that the first release starts from, its reports' codebooks and projection, from the pool alone.

Topic centroids of the pool tell nothing about any reader, and gain already (+1.1 to +1.8 of R@400
at K = 16); user prototypes learned by secure sums replace them later (docs/decisions/009).
"""

from __future__ import annotations

import faiss
import numpy as np
from numpy.typing import NDArray

from backend.releases.errors import ReleaseNotPublished
from backend.releases.store import ReleaseStore
from device_app.wire.recall import DIRECTION_DIMENSIONS
from device_app.wire.releases import Codebook, Projection
from device_app.wire.tensors import pack

ITERATIONS = 25


def topic_centroids(
    vectors: NDArray[np.float32], *, basis_size: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """k-means with cosine: centroids [B, D] of length 1, and the topic [n] of each vector; one seed, one result.

    Measured before the first line of code: topic centroids as keys and values lose nothing against the whole
    vector, where a free basis loses 1 to 5 points of recall. Raises ReleaseNotPublished if the pool is smaller than
    the basis.
    """
    if len(vectors) < basis_size:
        raise ReleaseNotPublished(
            f"The pool has {len(vectors)} news with vectors.", field="vectors", limit=f"at least {basis_size}"
        )
    kmeans = faiss.Kmeans(
        vectors.shape[1], basis_size, niter=ITERATIONS, seed=seed, spherical=True, min_points_per_centroid=1
    )
    kmeans.train(np.ascontiguousarray(vectors, dtype=np.float32))
    _, topics = kmeans.index.search(np.ascontiguousarray(vectors, dtype=np.float32), 1)
    return np.asarray(kmeans.centroids, dtype=np.float32), topics[:, 0].astype(np.int64)


CODEBOOKS = {16: 4.0, 64: 8.0}
"""K -> epsilon: the default and the "high utility" choice (docs/results/recall.md)."""
DIRECTION_EPSILON = 4.0


def first_codebooks(store: ReleaseStore, vectors: NDArray[np.float32], *, seed: int) -> tuple[Codebook, ...]:
    """A codebook of each size in CODEBOOKS, its prototypes the pool's topic centroids [K, D] of length 1.

    A pool smaller than K has no codebook of that size: its readers report by a smaller one, or not at all.
    """
    found = []
    for size, epsilon in CODEBOOKS.items():
        if len(vectors) >= size:
            centroids, _ = topic_centroids(vectors, basis_size=size, seed=seed)
            blob = store.add_blob(pack({"prototypes": _unit(centroids)}))
            found.append(Codebook(size=size, epsilon=epsilon, prototypes=blob))
    return tuple(found)


def first_projection(store: ReleaseStore, vectors: NDArray[np.float32]) -> Projection | None:
    """The 8 directions in which the pool's news differ most: float32 [8, D] with orthonormal rows.

    None for vectors of fewer than 8 dimensions, or fewer news.
    """
    if min(vectors.shape) < DIRECTION_DIMENSIONS:
        return None
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)  # ascending
    matrix = np.ascontiguousarray(axes[:, : -DIRECTION_DIMENSIONS - 1 : -1].T, dtype=np.float32)
    return Projection(epsilon=DIRECTION_EPSILON, matrix=store.add_blob(pack({"projection": matrix})))


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-12), dtype=np.float32)
