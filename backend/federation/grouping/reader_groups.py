"""Cluster readers by the vectors that the global model gives them (FINDING, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

ITERATIONS, STARTS = 25, 10
"""The library starts from random readers; the start with the tightest groups is kept."""
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Clusters:
    """Centroids [K, D] of length 1, and the group [n] of each clustered vector."""

    centroids: NDArray[np.float32]
    labels: Labels


def unit(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Scale rows to length 1; a zero row, that of a reader without clicks, stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found = np.divide(vectors, lengths, out=np.zeros_like(vectors, dtype=np.float64), where=lengths > 0)
    return np.asarray(found, dtype=np.float32)


def cluster(vectors: NDArray[np.floating[Any]], groups: int, *, seed: int) -> Clusters:
    """Return K-means clusters of vectors [n, D] by cosine similarity, determined by the seed.

    Deviation from the paper, which clusters vectors unnormalised: here only directions count, so that a device finds
    its group by an inner product and no reader has more weight for a longer vector. Raises ValueError for fewer vectors
    than groups.
    """
    if not 1 <= groups <= len(vectors):
        raise ValueError(f"groups: from 1 to the {len(vectors)} readers, got {groups}")
    rows = np.ascontiguousarray(unit(vectors))
    means = faiss.Kmeans(
        rows.shape[1],
        groups,
        niter=ITERATIONS,
        nredo=STARTS,
        seed=seed,
        spherical=True,
        min_points_per_centroid=1,
        max_points_per_centroid=len(rows),
    )
    means.train(rows)
    centroids = unit(np.asarray(means.centroids))
    return Clusters(centroids, nearest(centroids, rows))


def nearest(centroids: NDArray[np.floating[Any]], vectors: NDArray[np.floating[Any]]) -> Labels:
    """Return for each vector [n, D] the centroid with the largest inner product.

    Ties go to the first, so a zero vector belongs to group 0. This is also a new reader's group if the vector comes
    from the model that the centroids were computed with.
    """
    found: Labels = np.argmax(np.asarray(vectors) @ np.asarray(centroids).T, axis=1).astype(np.int64)
    return found


def lloyd_step(sums: NDArray[np.floating[Any]], centroids: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return centroids [K, D] from each group's sum of unit vectors [K, D].

    A group whose sum is zero keeps its centroid. This is the step that K-means repeats; from sums alone it needs no
    single reader's vector.
    """
    moved = unit(sums)
    empty = ~moved.any(axis=1)
    moved[empty] = np.asarray(centroids, dtype=np.float32)[empty]
    return moved


def transitions(old: Labels, new: Labels, old_groups: int, new_groups: int) -> NDArray[np.int64]:
    """Return M [old_groups, new_groups]: how many readers moved from group i to group j.

    Raises ValueError for a label out of range.
    """
    if old.shape != new.shape:
        raise ValueError(f"labels: {old.shape} old ones and {new.shape} new ones")
    for name, labels, groups in (("old", old, old_groups), ("new", new, new_groups)):
        if len(labels) and not (labels.min() >= 0 and labels.max() < groups):
            raise ValueError(f"{name} labels: from 0 to {groups - 1}, got {labels.min()} to {labels.max()}")
    moves = np.zeros((old_groups, new_groups), dtype=np.int64)
    np.add.at(moves, (old, new), 1)
    return moves


def kept_names(moves: NDArray[np.int64]) -> Labels:
    """Return an old name for each new group, [K], so that most readers keep their group's name.

    It is the Hungarian assignment of the square M. Only names change: the set of models of eq. 8 stays the same.
    """
    from scipy.optimize import linear_sum_assignment  # slow import, not needed by every server

    old, new = linear_sum_assignment(moves, maximize=True)
    names = np.empty(len(moves), dtype=np.int64)
    names[new] = old
    return names


def renamed(found: Clusters, names: Labels) -> Clusters:
    """Return the same groups with group j renamed to names[j]; names: a permutation."""
    centroids = np.empty_like(found.centroids)
    centroids[names] = found.centroids
    return Clusters(centroids, names[found.labels])
