"""For each prototype its best news of a whole pool, and its normaliser, in one pass over the vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from backend.recall.index import VectorRows

NEWS_AT_ONCE = 8_192
"""Scores of 64 prototypes are two megabytes then, which stay in the processor's cache."""

Floats32 = NDArray[np.float32]


@dataclass(frozen=True)
class BestByPrototype:
    """Of K prototypes v_k over n news d_i, by s <v_k, d_i> + log pop_i.

    rows: for each prototype its `depth` best, in no order; ends [K]: no other row scores more. log_normalisers
    float64 [K]: log sum_i pop_i exp(s <v_k, d_i>) over all news.
    """

    rows: tuple[NDArray[np.int64], ...]
    ends: Floats32
    log_normalisers: NDArray[np.float64]

    @classmethod
    def of(
        cls, prototypes: Floats32, vectors: VectorRows, log_popularity: Floats32, *, sharpness: float, depth: int
    ) -> Self:
        """prototypes [K, D], vectors [n, D], log_popularity [n]; depth at least 1."""
        queries = np.float32(sharpness) * prototypes
        bests = [_Best(depth) for _ in prototypes]
        total = np.full(len(prototypes), -np.inf)
        for start in range(0, len(vectors), NEWS_AT_ONCE):
            block = slice(start, start + NEWS_AT_ONCE)
            scores = queries @ vectors[block].T  # [K, block]
            scores += log_popularity[block]
            peaks = scores.max(axis=1)  # [K]
            sums = np.exp(scores - peaks[:, None]).sum(axis=1, dtype=np.float64)
            total = np.logaddexp(total, peaks + np.log(sums))
            for best, mine in zip(bests, scores, strict=True):
                best.see(mine, start)
        for best in bests:
            best.cut()
        return cls(tuple(best.rows for best in bests), np.array([best.end for best in bests], np.float32), total)


class _Best:
    """The best rows seen so far: `depth` of them, and up to as many again before they are cut."""

    def __init__(self, depth: int) -> None:
        self._depth, self.end = depth, np.float32(-np.inf)
        self.rows, self._scores = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)

    def see(self, scores: Floats32, start: int) -> None:
        """The scores of the rows from `start` on."""
        better = np.flatnonzero(scores > self.end)
        if not len(better):
            return
        self.rows = np.concatenate([self.rows, better + start])
        self._scores = np.concatenate([self._scores, scores[better]])
        if len(self.rows) >= 2 * self._depth:
            self.cut()

    def cut(self) -> None:
        """Leave only the best."""
        if len(self.rows) > self._depth:
            kept = np.argpartition(self._scores, -self._depth)[-self._depth :]
            self.rows, self._scores = self.rows[kept], self._scores[kept]
            self.end = self._scores.min()
