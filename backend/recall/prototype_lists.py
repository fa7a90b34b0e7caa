"""The lists of a codebook over one catalogue, searched per prototype and mixed exactly.

log sum_k w_k P(i | k) is not an inner product, but log P(i | k) is one: of (s v_k, 1) with (d_i, log pop_i), minus log
Z_k. So the best articles of every prototype, and its normaliser, are found in one pass over the pool
(`BestByPrototype`), and a mixture is computed on the union of these lists. An article outside the union is outside
every list, so its score in a mixture is at most that of the lists' ends. If the last place of a result beats that
bound, the result is exact for the whole pool (Fagin's threshold algorithm); else all lists are made twice as deep.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from backend.popularity.estimate import SHARPNESS, utc_moments
from backend.recall.catalogue import Catalogue
from backend.recall.indexes.index import VectorRows
from backend.recall.merge import FRESH_HOURS, with_fresh
from backend.recall.posterior import code_weights
from backend.recall.served_releases import ServedCodebook
from protocol.recall import CANDIDATES_LIMIT

NEWS_AT_ONCE = 8_192
"""Scores of 64 prototypes then take two megabytes, which stay in the processor's cache."""

Floats32 = NDArray[np.float32]


@dataclass(frozen=True)
class BestByPrototype:
    """The best of n articles d_i for each of K prototypes v_k, by s <v_k, d_i> + log pop_i.

    rows: each prototype's `depth` best, unordered; ends [K]: no other row scores more. log_normalisers float64
    [K]: log sum_i pop_i exp(s <v_k, d_i>) over all articles.
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
        """Add the scores of the rows from `start` on."""
        better = np.flatnonzero(scores > self.end)
        if not len(better):
            return
        self.rows = np.concatenate([self.rows, better + start])
        self._scores = np.concatenate([self._scores, scores[better]])
        if len(self.rows) >= 2 * self._depth:
            self.cut()

    def cut(self) -> None:
        """Keep only the best."""
        if len(self.rows) > self._depth:
            kept = np.argpartition(self._scores, -self._depth)[-self._depth :]
            self.rows, self._scores = self.rows[kept], self._scores[kept]
            self.end = self._scores.min()


FRESH_MOST = 2 * CANDIDATES_LIMIT
"""Limit of fresh rows: after a burst of new articles only the last ones count as fresh."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Union:
    """The union of K lists.

    rows int64 [u] ascending; probability P(i | k) [K, u]; beyond [K], which no article outside the union exceeds (0 if
    the union is the whole pool).
    """

    rows: NDArray[np.int64]
    probability: Floats
    beyond: Floats
    depth: int


class PrototypeLists:
    """Lists of one pool's articles by mixtures of K prototypes, best first.

    Safe to use from several threads.

    prototypes [K, D], vectors [n, D] and log_popularity [n] are float32.
    """

    def __init__(
        self,
        prototypes: NDArray[np.float32],
        vectors: VectorRows,
        log_popularity: NDArray[np.float32],
        *,
        sharpness: float,
        depth: int = 2 * CANDIDATES_LIMIT,
    ) -> None:
        self._prototypes, self._vectors, self._log_popularity = prototypes, vectors, log_popularity
        self._sharpness = sharpness
        self._deepening = threading.Lock()
        best = self._best(depth)
        self._log_normalisers = best.log_normalisers
        self._union = self._searched(len(vectors)) if depth >= len(vectors) else self._united(best, depth)

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def depth(self) -> int:
        """How deep each prototype's own list has been searched so far."""
        return self._union.depth

    def mixed(self, weights: Floats, limit: int) -> NDArray[np.int64]:
        """The `limit` rows of the whole pool with the greatest sum_k w_k P(i | k), best first.

        Ties to the lower row.

        weights [K], 0 or more.
        """
        limit = min(limit, len(self))
        while True:
            union = self._union
            scores = weights @ union.probability  # [u]
            order = _best_first(scores, limit)
            if not limit or scores[order[-1]] > weights @ union.beyond or union.depth == len(self):
                return union.rows[order]
            self._deepen(union)

    def among(self, rows: NDArray[np.int64]) -> Floats:
        """P(i | k) of these rows: [K, rows]."""
        return self._probability(rows)

    def _deepen(self, union: _Union) -> None:
        with self._deepening:
            if self._union is union:
                self._union = self._searched(min(2 * union.depth, len(self)))

    def _searched(self, depth: int) -> _Union:
        if depth == len(self):
            rows = np.arange(depth)
            return _Union(rows, self._probability(rows), np.zeros(len(self._prototypes)), depth)
        return self._united(self._best(depth), depth)

    def _best(self, depth: int) -> BestByPrototype:
        return BestByPrototype.of(
            self._prototypes, self._vectors, self._log_popularity, sharpness=self._sharpness, depth=max(1, depth)
        )

    def _united(self, best: BestByPrototype, depth: int) -> _Union:
        rows = np.unique(np.concatenate(best.rows))
        # The sums are float32: a small slack keeps the bound valid.
        beyond = np.exp(best.ends.astype(np.float64) + 1e-4 - self._log_normalisers)
        return _Union(rows, self._probability(rows), beyond, depth)

    def _probability(self, rows: NDArray[np.int64]) -> Floats:
        products = self._sharpness * (self._prototypes @ self._vectors[rows].T).astype(np.float64)  # [K, u]
        return np.asarray(np.exp(products + self._log_popularity[rows] - self._log_normalisers[:, None]))


def _best_first(scores: Floats, limit: int) -> NDArray[np.intp]:
    """Positions of the `limit` greatest scores, of equal ones the lower position first; without sorting all."""
    if not 0 < limit < len(scores):
        return np.argsort(-scores, kind="stable")[:limit]
    good = np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
    return good[np.argsort(-scores[good], kind="stable")][:limit]


class CodeLists:
    """The lists of one codebook over one catalogue, with the list of each of its K codes precomputed.

    A share of every list's places goes to articles of the last hours; see `merge.with_fresh`.
    """

    def __init__(self, catalogue: Catalogue, codebook: ServedCodebook, *, sharpness: float) -> None:
        self._of_code: list[list[int]] = [[] for _ in codebook.prototypes]
        self._fresh_of_code = self._of_code
        self._fresh = np.empty(0, dtype=np.int64)
        self._fresh_set: frozenset[int] = frozenset()
        self._lists: PrototypeLists | None = None
        if not len(catalogue):
            return
        self._lists = PrototypeLists(
            codebook.prototypes, catalogue.vectors, catalogue.log_popularity, sharpness=sharpness
        )
        newest = utc_moments([catalogue.built_at - timedelta(hours=FRESH_HOURS)])
        self._fresh = np.flatnonzero(catalogue.published_at >= newest)[-FRESH_MOST:]
        self._fresh_set = frozenset(self._fresh.tolist())
        self._fresh_probability = self._lists.among(self._fresh)
        weights = [code_weights(codebook.shares, codebook.epsilon, code) for code in range(len(codebook.prototypes))]
        self._of_code = [self._lists.mixed(each, CANDIDATES_LIMIT).tolist() for each in weights]
        self._fresh_of_code = [self._fresh_by(each) for each in weights]

    def of_code(self, code: int, limit: int) -> list[int]:
        """The list for a report of that code."""
        return with_fresh(self._of_code[code][:limit], self._fresh_set, self._fresh_of_code[code])

    def mixed(self, weights: Floats, limit: int) -> list[int]:
        """The list for the weights of any other report."""
        if self._lists is None:
            return []
        return with_fresh(self._lists.mixed(weights, limit).tolist(), self._fresh_set, self._fresh_by(weights))

    def _fresh_by(self, weights: Floats) -> list[int]:
        """The best fresh articles of a mixture, as many as a list can need."""
        order = np.argsort(-(weights @ self._fresh_probability), kind="stable")[:CANDIDATES_LIMIT]
        rows: list[int] = self._fresh[order].tolist()
        return rows


class CodeListStore:
    """Lists by catalogue and codebook, made on first use or in advance, and kept as long as their catalogue."""

    def __init__(self, *, sharpness: float = SHARPNESS) -> None:
        self._sharpness = sharpness
        self._kept: WeakKeyDictionary[Catalogue, Mapping[str, CodeLists]] = WeakKeyDictionary()
        self._making = threading.Lock()

    def of(self, catalogue: Catalogue, codebook: ServedCodebook) -> CodeLists:
        """The lists of this codebook.

        The first use takes about a third of a second for 100,000 articles and 64 codes.
        """
        found = self._kept.get(catalogue, {}).get(codebook.name)
        if found is not None:
            return found
        with self._making:
            mine = self._kept.get(catalogue, {})
            found = mine.get(codebook.name)
            if found is None:
                found = CodeLists(catalogue, codebook, sharpness=self._sharpness)
                self._kept[catalogue] = {**mine, codebook.name: found}
            return found

    def prepare(self, catalogue: Catalogue, codebooks: Iterable[ServedCodebook]) -> None:
        """Make the lists before the first request."""
        for codebook in codebooks:
            self.of(catalogue, codebook)
