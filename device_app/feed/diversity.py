"""Variety: maximal marginal relevance under caps (Carbonell and Goldstein 1998)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import unit
from device_app.feed.columns import Codes

POOL_ROWS = 120
"""MMR looks at so many of the best rows."""
POOL_OF_A_CAP = 3
"""Of any one capped value it looks at so many times the cap, so that caps seldom leave places empty."""


def diversified(
    scores: NDArray[np.float64],
    vectors: NDArray[np.float32],
    caps: Mapping[str, tuple[Codes, int]],
    *,
    count: int,
    variety: float,
) -> list[int]:
    """Rows picked, best first: each time the greatest (1 - variety) * score - variety * likeness to those picked.

    scores [n] and vectors [n, D] describe the candidates; likeness is the greatest cosine, put on the
    scale of the scores of the pool. caps maps a name to (column [n], limit): no value of a column is picked more than
    `limit` times. Fewer than `count` rows come back if caps or candidates run out. Equal values go to the better score.
    """
    ranked = np.argsort(-scores, kind="stable")
    within = np.ones(len(ranked), dtype=bool)
    for column, limit in caps.values():
        within &= _place_in_group(column[ranked]) < POOL_OF_A_CAP * limit
    size = max(POOL_ROWS, 4 * count)
    picked = _picked(ranked[within][:size], scores, vectors, caps, count=count, variety=variety)
    if len(picked) < min(count, len(ranked)):
        picked = _picked(ranked, scores, vectors, caps, count=count, variety=variety)
    return picked


def _place_in_group(values: Codes) -> NDArray[np.intp]:
    """[n]: how many earlier rows have the same value."""
    order = np.argsort(values, kind="stable")
    grouped = values[order]
    starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    place = np.empty(len(values), dtype=np.intp)
    place[order] = np.arange(len(values)) - np.repeat(starts, np.diff(np.r_[starts, len(values)]))
    return place


def _picked(
    pool: NDArray[np.intp],
    scores: NDArray[np.float64],
    vectors: NDArray[np.float32],
    caps: Mapping[str, tuple[Codes, int]],
    *,
    count: int,
    variety: float,
) -> list[int]:
    if not len(pool):
        return []
    values = scores[pool]
    spread = max(float(values.max() - values.min()), 1e-9)
    relevance = (1.0 - variety) * (values - values.min()) / spread  # -inf once a row is picked or shut out by a cap
    near = unit(vectors[pool])
    nearest = np.zeros(len(pool), dtype=np.float64)
    capped = [(column[pool], limit, Counter[int]()) for column, limit in caps.values()]
    picked: list[int] = []
    while len(picked) < count:
        best = int(np.argmax(relevance - variety * nearest))
        if relevance[best] == -np.inf:
            break
        picked.append(int(pool[best]))
        relevance[best] = -np.inf
        np.maximum(nearest, near @ near[best], out=nearest)
        for values_of, limit, taken in capped:
            value = values_of[best]
            taken[value] += 1
            if taken[value] >= limit:
                relevance[values_of == value] = -np.inf
    return picked
