"""The basic interests that the first release starts from: topic centroids of the pool."""

from __future__ import annotations

import faiss
import numpy as np
from numpy.typing import NDArray

from backend.releases.errors import ReleaseNotPublished

ITERATIONS = 25


def topic_centroids(
    vectors: NDArray[np.float32], *, basis_size: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """k-means with cosine: centroids [B, D] of length 1, and the topic [n] of each vector; one seed, one result.

    The design study (RECALL, section 2) found that topic centroids as keys and values lose nothing against the whole
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
