"""The lists of a codebook over one catalogue, found by prototype and mixed exactly.

log sum_k w_k P(i | k) is no inner product, but log P(i | k) is one: of (s v_k, 1) with (d_i, log pop_i), less log Z_k.
So each prototype's own list is found in one pass over the pool (`best_by_prototype.py`), and a mixture is worked out on
their union. A piece of news outside the union is outside every list, so its mixture is at most that of the lists' ends:
where the last place of a result beats that, the result is the whole pool's (Fagin's threshold rule); else all lists are
made twice as deep.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from backend.popularity.prior import SHARPNESS, utc_moments
from backend.recall.bayes import code_weights
from backend.recall.best_by_prototype import BestByPrototype
from backend.recall.catalogue import Catalogue
from backend.recall.index import VectorRows
from backend.recall.merge import FRESH_HOURS, with_fresh
from backend.recall.served_releases import ServedCodebook
from device_app.wire.recall import CANDIDATES_LIMIT

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
        # Sums in float32: a hair of slack keeps the bound a bound.
        beyond = np.exp(best.ends.astype(np.float64) + 1e-4 - self._log_normalisers)
        return _Union(rows, self._probability(rows), beyond, depth)

    def _probability(self, rows: NDArray[np.int64]) -> Floats:
        products = self._sharpness * (self._prototypes @ self._vectors[rows].T).astype(np.float64)  # [K, u]
        return np.asarray(np.exp(products + self._log_popularity[rows] - self._log_normalisers[:, None]))


def _best_first(scores: Floats, limit: int) -> NDArray[np.intp]:
    """The places of the `limit` greatest, equal ones by the lower place; without sorting all."""
    if not 0 < limit < len(scores):
        return np.argsort(-scores, kind="stable")[:limit]
    good = np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
    return good[np.argsort(-scores[good], kind="stable")][:limit]


class CodeLists:
    """PrototypeLists of one codebook over one catalogue, with the list of each of its K reports ready.

    A share of the places of every list goes to news of the last hours; see `merge.with_fresh`.
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
    """Lists by catalogue and codebook, made on first use or before, and kept for as long as their catalogue is."""

    def __init__(self, *, sharpness: float = SHARPNESS) -> None:
        self._sharpness = sharpness
        self._kept: WeakKeyDictionary[Catalogue, Mapping[str, CodeLists]] = WeakKeyDictionary()
        self._making = threading.Lock()

    def of(self, catalogue: Catalogue, codebook: ServedCodebook) -> CodeLists:
        """The lists of this codebook; made on first use, about a third of a second for 100,000 news and 64 codes."""
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
        """Make the lists before anybody asks."""
        for codebook in codebooks:
            self.of(catalogue, codebook)
