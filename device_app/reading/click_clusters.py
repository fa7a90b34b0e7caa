"""Clusters the reader's clicks into interests, and computes each one's share.

Uni-FedRec, "Interest Modeling".
"""

import numpy as np
from numpy.typing import NDArray


def average_linkage(contexts: NDArray[np.float32], distance: float, channels_limit: int) -> NDArray[np.int64]:
    """Return the cluster of every click, 0 .. C-1, by average linkage on Euclidean distance.

    contexts is [H, D], real clicks only (never padding), oldest first. Two clusters merge while their average pairwise
    distance is at most `distance` (d in the paper); if more than `channels_limit` (C_max) remain, the same dendrogram
    is cut at C_max clusters. Channel 0 is the largest cluster; ties go to the one with the older first click. H = 0
    gives no labels; H = 1 gives one cluster, since linkage is undefined for a single row. Raises ValueError for an
    invalid shape, distance or limit.
    """
    if contexts.ndim != 2:
        raise ValueError(f"contexts: needs two axes [H, D], got shape {contexts.shape}")
    if not distance > 0:
        raise ValueError(f"distance: must be above 0, got {distance}")
    if channels_limit < 1:
        raise ValueError(f"channels_limit: must be at least 1, got {channels_limit}")
    H = len(contexts)
    if H < 2:
        return np.zeros(H, dtype=np.int64)
    from scipy.cluster.hierarchy import fcluster, linkage  # slow import, and a new reader has no clicks

    dendrogram = linkage(contexts.astype(np.float64), method="average", metric="euclidean")
    labels = fcluster(dendrogram, t=distance, criterion="distance")
    if labels.max() > channels_limit:
        labels = fcluster(dendrogram, t=channels_limit, criterion="maxclust")
    return _largest_first(labels)


def _largest_first(labels: NDArray[np.int32]) -> NDArray[np.int64]:
    """Renumber clusters by size, largest first; ties go to the older first click."""
    names, first, compact, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return rank[compact]


def membership(labels: NDArray[np.int64], channels_limit: int) -> NDArray[np.float32]:
    """Return [C_max, H], 1 where click j is in channel c; channels without clicks are zero rows."""
    members = np.zeros((channels_limit, len(labels)), dtype=np.float32)
    members[labels, np.arange(len(labels))] = 1.0
    return members


def counts(labels: NDArray[np.int64]) -> tuple[int, ...]:
    """Return |H_c|, the number of clicks per channel, channel 0 first; empty without clicks."""
    return tuple(int(n) for n in np.bincount(labels)) if len(labels) else ()


def quotas(labels: NDArray[np.int64], channels_limit: int) -> NDArray[np.float32]:
    """Return q_c = |H_c| / H for every channel up to C_max (Uni-FedRec, "News Recall").

    Channels without clicks get 0. The quotas sum to 1, or to 0 without clicks.
    """
    held = np.bincount(labels, minlength=channels_limit)
    return (held / max(1, len(labels))).astype(np.float32)
