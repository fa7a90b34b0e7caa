"""Groups of readers by the vectors that the global model gives them (FINDING, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

ITERATIONS, STARTS = 25, 10
"""The library starts from random readers; of several starts the one with the tightest groups is kept."""
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Clusters:
    """centroids [K, D] of length 1, and the group [n] of each vector they were found from."""

    centroids: NDArray[np.float32]
    labels: Labels


def unit(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Rows of length 1; a zero row, a reader without clicks, stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found = np.divide(vectors, lengths, out=np.zeros_like(vectors, dtype=np.float64), where=lengths > 0)
    return np.asarray(found, dtype=np.float32)


def cluster(vectors: NDArray[np.floating[Any]], groups: int, *, seed: int) -> Clusters:
    """K-means by cosine of vectors [n, D]; one seed, one result.

    Deviation from the paper, which clusters vectors as they are: directions, so that a device finds its group by an
    inner product and no reader's vector weighs more for being long. Raises ValueError for fewer vectors than groups.
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
    """The centroid of greatest inner product for each of the vectors [n, D]; the first of equals, so a zero vector's
    group is 0. A new reader's group, if the vector comes from the model that the centroids were found under."""
    found: Labels = np.argmax(np.asarray(vectors) @ np.asarray(centroids).T, axis=1).astype(np.int64)
    return found


def lloyd_step(sums: NDArray[np.floating[Any]], centroids: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Centroids [K, D] from each group's sum of unit vectors [K, D]; a group whose sum is zero keeps its own.

    The step that K-means repeats, from sums alone: no vector of a reader is needed.
    """
    moved = unit(sums)
    empty = ~moved.any(axis=1)
    moved[empty] = np.asarray(centroids, dtype=np.float32)[empty]
    return moved


def transitions(old: Labels, new: Labels, old_groups: int, new_groups: int) -> NDArray[np.int64]:
    """M [old_groups, new_groups]: how many readers went from group i to group j. Raises ValueError for a bad label."""
    if old.shape != new.shape:
        raise ValueError(f"labels: {old.shape} old ones and {new.shape} new ones")
    for name, labels, groups in (("old", old, old_groups), ("new", new, new_groups)):
        if len(labels) and not (labels.min() >= 0 and labels.max() < groups):
            raise ValueError(f"{name} labels: from 0 to {groups - 1}, got {labels.min()} to {labels.max()}")
    moves = np.zeros((old_groups, new_groups), dtype=np.int64)
    np.add.at(moves, (old, new), 1)
    return moves


def kept_names(moves: NDArray[np.int64]) -> Labels:
    """The old name for each new group, [K], so that most readers keep their group's name (Hungarian assignment of
    the square M). Names only: the set of models that formula 8 makes doesn't change."""
    from scipy.optimize import linear_sum_assignment  # takes a third of a second, and not every server needs it

    old, new = linear_sum_assignment(moves, maximize=True)
    names = np.empty(len(moves), dtype=np.int64)
    names[new] = old
    return names


def renamed(found: Clusters, names: Labels) -> Clusters:
    """The same groups, group j called names[j]; names: a permutation."""
    centroids = np.empty_like(found.centroids)
    centroids[names] = found.centroids
    return Clusters(centroids, names[found.labels])
