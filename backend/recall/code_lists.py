"""The lists of reports by codebook: weights become one interest vector, and FAISS finds the articles near it.

The prototypes v_k are basic interests. A report gives their weights w [K] by Bayes' rule (`posterior.py`), and the
server aggregates r = sum_k w_k v_k (Uni-FedRec, "News Recall"). The list has the articles d with the greatest
s <r, d> + log pop(d): popularity is one more coordinate of the vectors that are searched. Where the catalogue has an
index, that index answers, exact or approximate as the setting `index` says; otherwise `BasisScan` does, exactly.

Only K codes can be reported, so their lists are found in advance, once for each catalogue.
"""

import threading
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from backend.popularity.estimate import SHARPNESS, utc_moments
from backend.recall.catalogue import Catalogue
from backend.recall.indexes.basis import BasisScan
from backend.recall.merge import FRESH_HOURS, with_fresh
from backend.recall.posterior import code_weights
from backend.recall.served_releases import ServedCodebook
from protocol.recall import CANDIDATES_LIMIT

FRESH_MOST = 2 * CANDIDATES_LIMIT
"""Limit of fresh rows: after a burst of new articles only the last ones count as fresh."""

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]


class SearchedNews(Protocol):
    """A catalogue searched by its index, or by a scan of a basis: rows for interest vectors [C, D], best first."""

    def __len__(self) -> int: ...

    def search(self, queries: Vectors, k: int) -> list[list[int]]:
        """Return the k best rows for each vector, by inner product."""

    def popular_near(self, queries: Vectors, k: int, *, sharpness: float) -> list[list[int]]:
        """Return the k best rows for each vector, by similarity and popularity."""


def aggregated(weights: Floats, prototypes: Vectors) -> Vectors:
    """r = sum_k w_k v_k: weights [C, K] and prototypes [K, D] give float32 [C, D].

    The less a report says, the more even its weights are and the shorter r is: popularity then decides.
    """
    return np.asarray(weights @ prototypes, dtype=np.float32)


class CodeLists:
    """The lists of one codebook over one catalogue, with the list of each of its K codes found in advance.

    A share of every list's places goes to articles of the last hours; see `merge.with_fresh`. Does not keep the
    catalogue alive.
    """

    def __init__(
        self, catalogue: Catalogue, codebook: ServedCodebook, *, sharpness: float, news: SearchedNews | None = None
    ) -> None:
        """news: what to search; the catalogue itself by default."""
        self._sharpness = sharpness
        newest = utc_moments([catalogue.built_at - timedelta(hours=FRESH_HOURS)])
        self._fresh = np.flatnonzero(catalogue.published_at >= newest)[-FRESH_MOST:]
        self._fresh_set: frozenset[int] = frozenset(self._fresh.tolist())
        self._fresh_vectors = np.asarray(catalogue.vectors[self._fresh], dtype=np.float32)
        self._fresh_popularity = catalogue.log_popularity[self._fresh]
        codes = range(len(codebook.prototypes))
        weights = [code_weights(codebook.shares, codebook.epsilon, code) for code in codes]
        vectors = aggregated(np.array(weights), codebook.prototypes)
        searched = catalogue if news is None else news
        self._of_code = searched.popular_near(vectors, CANDIDATES_LIMIT, sharpness=sharpness)
        self._fresh_of_code = [self._fresh_near(vector) for vector in vectors]

    def of_code(self, code: int, limit: int) -> list[int]:
        """The list for a report of that code."""
        return with_fresh(self._of_code[code][:limit], self._fresh_set, self._fresh_of_code[code])

    def of_vector(self, vector: Vectors, limit: int, news: SearchedNews) -> list[int]:
        """The list for the interest vector [D] of any other report, searched in `news`."""
        (rows,) = news.popular_near(vector[None], limit, sharpness=self._sharpness)
        return with_fresh(rows, self._fresh_set, self._fresh_near(vector))

    def _fresh_near(self, vector: Vectors) -> list[int]:
        """The best fresh articles near a vector, as many as a list can need."""
        if not len(self._fresh):
            return []  # the vectors of an empty pool have no length either
        scores = self._sharpness * (self._fresh_vectors @ vector) + self._fresh_popularity
        order = np.argsort(-scores, kind="stable")[:CANDIDATES_LIMIT]
        rows: list[int] = self._fresh[order].tolist()
        return rows


class CodeListStore:
    """Lists by catalogue and codebook, made on first use or in advance, and kept as long as their catalogue."""

    def __init__(self, *, sharpness: float = SHARPNESS, threads: int = 1) -> None:
        self._sharpness, self._threads = sharpness, threads
        self._kept: WeakKeyDictionary[Catalogue, Mapping[str, CodeLists]] = WeakKeyDictionary()
        self._making = threading.Lock()

    def of(self, catalogue: Catalogue, codebook: ServedCodebook) -> CodeLists:
        """The lists of this codebook; the first use reads all vectors once."""
        found = self._kept.get(catalogue, {}).get(codebook.name)
        if found is not None:
            return found
        with self._making:
            mine = self._kept.get(catalogue, {})
            found = mine.get(codebook.name)
            if found is None:
                found = CodeLists(
                    catalogue, codebook, sharpness=self._sharpness, news=self._scan(catalogue, codebook.prototypes)
                )
                self._kept[catalogue] = {**mine, codebook.name: found}
            return found

    def prepare(self, catalogue: Catalogue, codebooks: Iterable[ServedCodebook]) -> None:
        """Make the lists before the first request."""
        for codebook in codebooks:
            self.of(catalogue, codebook)

    def _scan(self, catalogue: Catalogue, prototypes: Vectors) -> SearchedNews | None:
        """Coordinates in the prototypes' span, used once; None if the catalogue's index is searched."""
        if not catalogue.by_basis:
            return None
        return BasisScan.over(prototypes, catalogue.vectors, catalogue.log_popularity, threads=self._threads)
