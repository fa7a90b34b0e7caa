"""PinnerSage: medoids of clusters of fixed click vectors.

Nothing is trained (Pal et al., KDD 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage

MEDOIDS = 3
DECAY_PER_DAY = 0.01
MERGE_COST_LIMIT = 0.9  # about 10 interests a reader on MIND; recall there hardly depends on it


@dataclass(frozen=True)
class Medoid:
    """One interest: the row of the click that represents it, its number of clicks, and its importance."""

    click: int
    size: int
    importance: float


def medoids(
    clicks: NDArray[np.floating],
    days_ago: ArrayLike | None = None,
    *,
    merge_cost_limit: float = MERGE_COST_LIMIT,
    limit: int = MEDOIDS,
) -> list[Medoid]:
    """Return the reader's most important interests, best first.

    Ward clustering: clusters merge while n_a n_b / (n_a + n_b) ||mu_a - mu_b||^2 is at most the limit. The medoid is
    the
    member with the least sum of squared distances to the others (the first among equals). Importance is
    sum_j exp(-0.01 days_j). Recall queries with the medoids' own vectors, so each query is an article that the reader
    clicked: the worst case for the privacy proxy, by design.

    Uncertain: the limit, for which neither paper gives a number for news; with 0.9 two single unit vectors merge if
    their cosine is at least .1. The original samples three medoids by importance; here the most important are taken.

    Args:
        clicks: real clicks only [n, D]; not normalised here.
        days_ago: age of each click in days, 0 or more [n]. Without it importance is the number of clicks.
        merge_cost_limit: above 0.
        limit: maximum number of interests.

    Returns:
        At most `limit` medoids; none without clicks. Among equal importance, the earlier click first.

    Raises:
        ValueError: names the argument that has a wrong shape, is out of range or not finite.
    """
    points = np.asarray(clicks, np.float64)
    if points.ndim != 2 or not np.isfinite(points).all():
        raise ValueError(f"clicks must be finite and of shape [n, D], got shape {points.shape}")
    if not (np.isfinite(merge_cost_limit) and merge_cost_limit > 0):
        raise ValueError(f"merge_cost_limit must be positive and finite, got {merge_cost_limit}")
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    days = np.zeros(len(points)) if days_ago is None else np.asarray(days_ago, np.float64)
    if days.shape != (len(points),) or not (np.isfinite(days).all() and (days >= 0).all()):
        raise ValueError(f"days_ago must be {len(points)} finite numbers of 0 or more, got shape {days.shape}")
    fresh = np.exp(-DECAY_PER_DAY * days)
    found = [_medoid(points, np.flatnonzero(labels), fresh) for labels in _clusters(points, merge_cost_limit)]
    return sorted(found, key=lambda one: (-one.importance, one.click))[:limit]


def _clusters(points: NDArray[np.float64], merge_cost_limit: float) -> NDArray[np.bool_]:
    """Return membership rows, one for each cluster [clusters, n]."""
    if len(points) < 2:
        return np.ones((len(points), len(points)), bool)
    # SciPy's Ward height is sqrt(2 * merge cost).
    labels = fcluster(linkage(points, "ward"), np.sqrt(2 * merge_cost_limit), "distance")
    members: NDArray[np.bool_] = np.unique(labels)[:, None] == labels
    return members


def _medoid(points: NDArray[np.float64], members: NDArray[np.intp], fresh: NDArray[np.float64]) -> Medoid:
    inside = points[members]
    # sum_k ||x_j - x_k||^2 = n ||x_j - mu||^2 + a constant, but equal members must tie exactly, so compute it
    # directly.
    totals = np.square(inside[:, None] - inside).sum(axis=(1, 2))
    return Medoid(int(members[totals.argmin()]), len(members), float(fresh[members].sum()))
