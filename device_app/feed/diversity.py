"""Diversifies a page by maximal marginal relevance under caps.

Carbonell and Goldstein (1998).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Codes, unit

POOL_ROWS = 120
"""MMR considers at least this many of the best rows."""
SPREADS = 4.0
"""Scores are divided by this many standard deviations of the pool's scores.

That is about their range, but unlike the range it barely changes when one card joins or leaves the top.
"""
POOL_OF_A_CAP = 3
"""The pool holds at most this many times the cap of each capped value.

So caps rarely leave places empty.
"""


@dataclass(frozen=True)
class Cap:
    """Limits how often each value of a column [n] is picked.

    limit applies to every value; `more` overrides it for some.
    """

    column: Codes
    limit: int
    more: Mapping[int, int] = field(default_factory=dict)

    @property
    def limits(self) -> NDArray[np.int64]:
        """The limit of each row's value, [n]."""
        found = np.full(len(self.column), self.limit, dtype=np.int64)
        for value, limit in self.more.items():
            found[self.column == value] = limit
        return found

    def only(self, rows: NDArray[np.intp]) -> Cap:
        return Cap(self.column[rows], self.limit, self.more)


@dataclass(frozen=True)
class Share:
    """A minimum number of picks among these rows [n], or all of them if there are fewer."""

    rows: NDArray[np.bool_]
    least: int

    def only(self, rows: NDArray[np.intp]) -> Share:
        return Share(self.rows[rows], self.least)

    def beside(self, taken: Sequence[int]) -> Share:
        """Return what remains of the share after these rows are placed."""
        return Share(self.rows, max(0, self.least - int(np.count_nonzero(self.rows[list(taken)]))))


def diversified(
    scores: NDArray[np.float64],
    vectors: NDArray[np.float32],
    caps: Sequence[Cap],
    shares: Sequence[Share] = (),
    *,
    count: int,
    variety: float,
) -> list[int]:
    """Return the picked rows, best first, by maximal marginal relevance.

    Each step picks the highest (1 - variety) * score - variety * similarity to the rows picked so far. scores [n] and
    vectors [n, D] describe the candidates. Similarity is the highest cosine; scores are converted to its scale by
    SPREADS. Shares are filled first, in order, then the rest. Fewer than `count` rows come back if caps or candidates
    run out. Ties go to the better score.
    """
    ranked = np.argsort(-scores, kind="stable")
    within = np.ones(len(ranked), dtype=bool)
    for cap in caps:
        within &= _place_in_group(cap.column[ranked]) < POOL_OF_A_CAP * cap.limits[ranked]
    size = max(POOL_ROWS, 4 * count)
    pool = ranked[within][:size]
    for share in shares:
        best = ranked[share.rows[ranked]][: POOL_OF_A_CAP * share.least]
        pool = np.concatenate([pool, best[~np.isin(best, pool)]])
    selection = _Selection(pool, scores, vectors, caps, variety)
    for share in shares:
        selection.fill(min(share.least, count), among=share.rows[pool])
    selection.fill(count)
    picked = selection.picked
    if len(picked) < min(count, len(ranked)) and len(pool) < len(ranked):
        selection = _Selection(ranked, scores, vectors, caps, variety)
        for share in shares:
            selection.fill(min(share.least, count), among=share.rows[ranked])
        selection.fill(count)
        picked = selection.picked
    if not any(share.least for share in shares):
        return picked
    best_first = np.array(sorted(picked, key=lambda row: -scores[row]), dtype=np.intp)
    in_order = _Selection(best_first, scores, vectors, (), variety)
    in_order.fill(len(picked))
    return in_order.picked


def _place_in_group(values: Codes) -> NDArray[np.intp]:
    """Return how many earlier rows have the same value, [n]."""
    order = np.argsort(values, kind="stable")
    grouped = values[order]
    starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
    place = np.empty(len(values), dtype=np.intp)
    place[order] = np.arange(len(values)) - np.repeat(starts, np.diff(np.r_[starts, len(values)]))
    return place


class _Selection:
    """Picks rows one by one from a pool that is sorted by score, best first."""

    def __init__(
        self,
        pool: NDArray[np.intp],
        scores: NDArray[np.float64],
        vectors: NDArray[np.float32],
        caps: Sequence[Cap],
        variety: float,
    ) -> None:
        values = scores[pool]
        spread = max(SPREADS * float(values.std()), 1e-9) if len(pool) else 1.0
        self.picked: list[int] = []
        self._pool = pool
        self._variety = variety
        # -inf once a row is picked or excluded by a cap
        self._relevance = (1.0 - variety) * (values - values.min(initial=np.inf)) / spread
        self._near = unit(vectors[pool])
        self._nearest = np.zeros(len(pool), dtype=np.float64)
        self._capped = [(cap.column[pool], cap.limits[pool], Counter[int]()) for cap in caps]
        for _, limits, _ in self._capped:
            self._relevance[limits <= 0] = -np.inf

    def fill(self, count: int, *, among: NDArray[np.bool_] | None = None) -> None:
        """Pick until `count` of these rows (of all rows, if not given) are picked, or none is left."""
        here = np.isin(self._pool, self.picked)
        have = int(np.count_nonzero(here if among is None else here & among))
        while have < count and len(self._pool):
            worth = self._relevance - self._variety * self._nearest
            best = int(np.argmax(worth if among is None else np.where(among, worth, -np.inf)))
            if self._relevance[best] == -np.inf or not (among is None or among[best]):
                return
            self._pick(best)
            have += 1

    def _pick(self, best: int) -> None:
        self.picked.append(int(self._pool[best]))
        self._relevance[best] = -np.inf
        np.maximum(self._nearest, self._near @ self._near[best], out=self._nearest)
        for values_of, limits, taken in self._capped:
            value = values_of[best]
            taken[value] += 1
            if taken[value] >= limits[best]:
                self._relevance[values_of == value] = -np.inf
