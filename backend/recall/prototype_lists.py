"""The lists of a codebook over one catalogue, found through FAISS and mixed exactly.

log sum_k w_k P(i | k) is no inner product, but log P(i | k) is one: of (s v_k, 1) with (d_i, log pop_i), less log Z_k.
So FAISS finds each prototype's own list, log popularity being one more dimension, and a mixture is worked out on their
union. A piece of news outside the union is outside every list, so its mixture is at most that of the lists' ends: where
the last place of a result beats that, the result is the whole pool's (Fagin's threshold rule); else all lists are made
twice as deep.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import faiss
import numpy as np
from numpy.typing import NDArray

from backend.popularity.prior import SHARPNESS
from backend.recall.bayes import code_weights, log_normalisers
from backend.recall.catalogue import Catalogue
from backend.recall.merge import FRESH_HOURS, with_fresh
from backend.recall.served_releases import ServedCodebook
from device_app.wire.recall import CANDIDATES_LIMIT

CATALOGUES_KEPT = 2
NEWS_AT_ONCE = 65_536
FRESH_MOST = 2 * CANDIDATES_LIMIT
"""Rows come in the order of arrival: after a burst the last so many count as fresh."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Union:
    """The union of K lists: rows int64 [u] ascending, probability P(i | k) [K, u], and beyond [K], which no news
    outside the union exceeds (0 where the union is the whole pool)."""

    rows: NDArray[np.int64]
    probability: Floats
    beyond: Floats
    depth: int


class PrototypeLists:
    """The news of one pool by mixtures of K prototypes, best first. Safe to use from several threads.

    prototypes [K, D], vectors [n, D] and log_popularity [n] are float32; threads are FAISS's within one search.
    """

    def __init__(
        self,
        prototypes: NDArray[np.float32],
        vectors: NDArray[np.float32],
        log_popularity: NDArray[np.float32],
        *,
        sharpness: float,
        threads: int = 1,
        depth: int = 2 * CANDIDATES_LIMIT,
    ) -> None:
        self._prototypes, self._vectors, self._log_popularity = prototypes, vectors, log_popularity
        self._sharpness, self._threads = sharpness, threads
        self._log_normalisers = log_normalisers(prototypes, vectors, log_popularity, sharpness)
        self._deepening = threading.Lock()
        self._union = self._searched(min(depth, len(vectors)))

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def depth(self) -> int:
        """How deep each prototype's own list was searched so far."""
        return self._union.depth

    def mixed(self, weights: Floats, limit: int) -> NDArray[np.int64]:
        """The `limit` rows of the whole pool with the greatest sum_k w_k P(i | k), best first; ties to the lower row.

        weights [K], 0 or more.
        """
        limit = min(limit, len(self))
        while True:
            union = self._union
            scores = weights @ union.probability  # [u]
            order = np.argsort(-scores, kind="stable")[:limit]
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
        K = len(self._prototypes)
        if depth == len(self):
            return _Union(np.arange(depth), self._probability(np.arange(depth)), np.zeros(K), depth)
        queries = np.hstack([self._sharpness * self._prototypes, np.ones((K, 1))]).astype(np.float32)  # [K, D + 1]
        faiss.omp_set_num_threads(self._threads)
        scores, found = np.empty((K, 0), dtype=np.float32), np.empty((K, 0), dtype=np.int64)
        for start in range(0, len(self), NEWS_AT_ONCE):  # a large pool is never copied whole
            block = slice(start, start + NEWS_AT_ONCE)
            news = np.hstack([self._vectors[block], self._log_popularity[block, None]])  # [b, D + 1]
            nearest = min(depth, len(news))
            block_scores, block_rows = faiss.knn(queries, news, nearest, metric=faiss.METRIC_INNER_PRODUCT)
            scores, found = np.hstack([scores, block_scores]), np.hstack([found, block_rows + start])
            best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
            scores, found = np.take_along_axis(scores, best, 1), np.take_along_axis(found, best, 1)
        rows = np.unique(found)
        # FAISS sums in float32: a hair of slack keeps the bound a bound.
        ends = scores[:, -1].astype(np.float64) + 1e-4
        return _Union(rows, self._probability(rows), np.exp(ends - self._log_normalisers), depth)

    def _probability(self, rows: NDArray[np.int64]) -> Floats:
        products = self._sharpness * (self._prototypes @ self._vectors[rows].T).astype(np.float64)  # [K, u]
        return np.asarray(np.exp(products + self._log_popularity[rows] - self._log_normalisers[:, None]))


class CodeLists:
    """PrototypeLists of one codebook over one catalogue, with the list of each of its K reports ready.

    A share of the places of every list goes to news of the last hours; see `merge.with_fresh`.
    """

    def __init__(self, catalogue: Catalogue, codebook: ServedCodebook, *, sharpness: float, threads: int = 1) -> None:
        self._of_code: list[list[int]] = [[] for _ in codebook.prototypes]
        self._fresh_of_code = self._of_code
        self._fresh = np.empty(0, dtype=np.int64)
        self._fresh_set: frozenset[int] = frozenset()
        self._lists: PrototypeLists | None = None
        if not len(catalogue):
            return
        self._lists = PrototypeLists(
            codebook.prototypes, catalogue.vectors, catalogue.log_popularity, sharpness=sharpness, threads=threads
        )
        newest = catalogue.built_at - timedelta(hours=FRESH_HOURS)
        self._fresh = np.array(
            [row for row, at in enumerate(catalogue.published_at) if at >= newest][-FRESH_MOST:], dtype=np.int64
        )
        self._fresh_set = frozenset(self._fresh.tolist())
        self._fresh_probability = self._lists.among(self._fresh)
        weights = [code_weights(codebook.shares, codebook.epsilon, code) for code in range(len(codebook.prototypes))]
        self._of_code = [self._lists.mixed(each, CANDIDATES_LIMIT).tolist() for each in weights]
        self._fresh_of_code = [self._fresh_by(each) for each in weights]

    def of_code(self, code: int, limit: int) -> list[int]:
        """The list of a report of that code."""
        return with_fresh(self._of_code[code][:limit], self._fresh_set, self._fresh_of_code[code])

    def mixed(self, weights: Floats, limit: int) -> list[int]:
        """The list of any other report's weights."""
        if self._lists is None:
            return []
        return with_fresh(self._lists.mixed(weights, limit).tolist(), self._fresh_set, self._fresh_by(weights))

    def _fresh_by(self, weights: Floats) -> list[int]:
        """The first fresh news of a mixture, as many as a list could ever want."""
        order = np.argsort(-(weights @ self._fresh_probability), kind="stable")[:CANDIDATES_LIMIT]
        rows: list[int] = self._fresh[order].tolist()
        return rows


class CodeListStore:
    """Lists by codebook over the catalogue that serves; another catalogue or codebook has lists of its own."""

    def __init__(self, *, sharpness: float = SHARPNESS, threads: int = 1) -> None:
        self._sharpness, self._threads = sharpness, threads
        # Two catalogues: the one that serves, and the next one while its lists are being made.
        self._kept: tuple[tuple[Catalogue, Mapping[str, CodeLists]], ...] = ()
        self._making = threading.Lock()

    def of(self, catalogue: Catalogue, codebook: ServedCodebook) -> CodeLists:
        """The lists of this codebook; made on first use, about a second at 100,000 news."""
        found = self._find(catalogue, codebook)
        if found is not None:
            return found
        with self._making:
            found = self._find(catalogue, codebook)
            if found is not None:
                return found
            made = CodeLists(catalogue, codebook, sharpness=self._sharpness, threads=self._threads)
            mine = next((lists for kept, lists in self._kept if kept is catalogue), {})
            others = tuple(pair for pair in self._kept if pair[0] is not catalogue)
            self._kept = (*others, (catalogue, {**mine, codebook.name: made}))[-CATALOGUES_KEPT:]
            return made

    def prepare(self, catalogue: Catalogue, codebooks: Iterable[ServedCodebook]) -> None:
        """Make the lists before anybody asks."""
        for codebook in codebooks:
            self.of(catalogue, codebook)

    def _find(self, catalogue: Catalogue, codebook: ServedCodebook) -> CodeLists | None:
        for kept, lists in self._kept:
            if kept is catalogue:
                return lists.get(codebook.name)
        return None
