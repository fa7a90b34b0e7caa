"""Variety: maximal marginal relevance under caps (Carbonell and Goldstein 1998)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

POOL_ROWS = 120
"""MMR looks at so many of the best rows, and at four times as many where caps leave places empty."""


def diversified(
    scores: NDArray[np.float64],
    units: NDArray[np.float32],
    caps: Mapping[str, tuple[NDArray[np.str_], int]],
    *,
    count: int,
    variety: float,
) -> list[int]:
    """Rows picked, best first: each time the greatest (1 - variety) * score - variety * likeness to those picked.

    scores [n] and units [n, D] (rows of length 1) describe the candidates; likeness is the greatest cosine, put on the
    scale of the scores of the pool. caps maps a name to (column [n], limit): no value of a column is picked more than
    `limit` times. Fewer than `count` rows come back if caps or candidates run out. Equal values go to the better score.
    """
    ranked = np.argsort(-scores, kind="stable")
    looked_at = max(POOL_ROWS, 3 * count)
    picked = _picked(ranked[:looked_at], scores, units, caps, count=count, variety=variety)
    while len(picked) < min(count, len(ranked)) and looked_at < len(ranked):
        looked_at *= 4
        picked = _picked(ranked[:looked_at], scores, units, caps, count=count, variety=variety)
    return picked


def _picked(
    pool: NDArray[np.intp],
    scores: NDArray[np.float64],
    units: NDArray[np.float32],
    caps: Mapping[str, tuple[NDArray[np.str_], int]],
    *,
    count: int,
    variety: float,
) -> list[int]:
    if not len(pool):
        return []
    values = scores[pool]
    spread = max(float(values.max() - values.min()), 1e-9)
    relevance = (1.0 - variety) * (values - values.min()) / spread
    likeness = units[pool] @ units[pool].T
    codes = [(np.unique(column[pool], return_inverse=True)[1], limit) for column, limit in caps.values()]
    used = [np.zeros(int(code.max()) + 1, dtype=np.int64) for code, _ in codes]
    nearest = np.zeros(len(pool), dtype=np.float64)
    free = np.ones(len(pool), dtype=bool)
    picked: list[int] = []
    while len(picked) < count and free.any():
        best = int(np.argmax(np.where(free, relevance - variety * nearest, -np.inf)))
        picked.append(int(pool[best]))
        free[best] = False
        np.maximum(nearest, likeness[best], out=nearest)
        for (code, limit), taken in zip(codes, used, strict=True):
            taken[code[best]] += 1
            if taken[code[best]] >= limit:
                free &= code != code[best]
    return picked
