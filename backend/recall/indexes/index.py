"""The interface of an index of article vectors. A larger inner product is nearer.

`ExactIndex` is the reference, plain NumPy inner products, against which every other index is measured.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from protocol.tensors import pack

Vectors = NDArray[np.float32]
"""float32 [n, D]"""
Keys = NDArray[np.int64]
"""int64 [n]: the catalogue's keys of vectors, 0 or more; they stay the same from one snapshot to the next."""
NO_KEY = -1
"""Fills a result that is shorter than requested."""


class VectorRows(Protocol):
    """Vectors [n, D] that are read by rows: an array, or `stored_vectors.StoredVectors`."""

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """[n, D]"""

    def __getitem__(self, rows: Any, /) -> Any:
        """The rows of a slice, or of an array of row numbers."""


class VectorIndex(Protocol):
    """An index that is built once and then only searched.

    A change is made to a `copy`, so a search keeps its snapshot.
    """

    @property
    def name(self) -> str:
        """Its name in `selection.INDEXES`: 'exact', 'ivf' or 'fastscan'."""

    @property
    def kind(self) -> str:
        """Description for the log and the console, such as 'exact' or 'IVF1024,SQ8 nprobe 64'."""

    @property
    def exact(self) -> bool:
        """Whether results are the true nearest neighbours, so that recall need not be checked."""

    def __len__(self) -> int: ...

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, Keys]:
        """The k nearest of each query [c, D]: scores [c, k], best first, and keys [c, k], padded with NO_KEY."""

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add vectors under new keys."""

    def remove(self, keys: Keys) -> int:
        """Remove keys; returns how many were present."""

    def copy(self) -> Self:
        """An independent index with the same content."""

    @property
    def factory(self) -> str:
        """FAISS's index factory string without its tuning, or 'exact'."""

    @property
    def efforts(self) -> tuple[int, ...]:
        """The values of `effort` worth trying, ascending; a single one if there is nothing to tune."""

    @property
    def effort(self) -> int:
        """How much of the index a search covers (nprobe of IVF, k_factor of FastScan's reranking)."""

    @effort.setter
    def effort(self, effort: int) -> None: ...

    def suits(self, count: int) -> bool:
        """Whether its structure still fits a pool of this size."""

    def dump(self) -> bytes:
        """The index as bytes; `backend.recall.indexes.store` stores them."""


QUERIES_AT_ONCE = 16


class ExactIndex:
    """True nearest neighbours; of equal scores the lower key. Simple rather than fast."""

    def __init__(self, dimensions: int) -> None:
        self._keys: Keys = np.empty(0, dtype=np.int64)
        self._vectors: Vectors = np.empty((0, dimensions), dtype=np.float32)

    @classmethod
    def over(cls, keys: Keys, vectors: VectorRows) -> ExactIndex:
        """An index over these arrays without copying them; keys must ascend."""
        index = cls(vectors.shape[1])
        index._keys, index._vectors = keys, vectors  # type: ignore[assignment]
        return index

    @property
    def kind(self) -> str:
        return "exact"

    @property
    def exact(self) -> bool:
        return True

    name = "exact"
    factory = "exact"
    efforts = (1,)
    effort = 1

    def suits(self, count: int) -> bool:
        return True

    def __len__(self) -> int:
        return len(self._keys)

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, Keys]:
        found = min(k, len(self))
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        keys = np.full((len(queries), k), NO_KEY, dtype=np.int64)
        if not found:
            return scores, keys
        vectors = np.asarray(self._vectors)
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            block = slice(start, start + QUERIES_AT_ONCE)
            products = queries[block] @ vectors.T  # [q, n]
            for row, product in enumerate(products, start=start):
                worst = np.partition(product, -found)[-found]
                pick = np.flatnonzero(product >= worst)  # ascending keys; more than `found` where scores tie
                pick = pick[np.argsort(-product[pick], kind="stable")][:found]
                scores[row, :found], keys[row, :found] = product[pick], self._keys[pick]
        return scores, keys

    def add(self, keys: Keys, vectors: Vectors) -> None:
        joined = np.concatenate([self._keys, keys])
        order = np.argsort(joined)
        self._keys, self._vectors = joined[order], np.concatenate([self._vectors, vectors])[order]

    def remove(self, keys: Keys) -> int:
        stay = ~np.isin(self._keys, keys)
        self._keys, self._vectors = self._keys[stay], self._vectors[stay]
        return int((~stay).sum())

    def copy(self) -> Self:
        twin = type(self)(self._vectors.shape[1])
        twin._keys, twin._vectors = self._keys, self._vectors  # replaced, never written into
        return twin

    def dump(self) -> bytes:
        return pack({"keys": self._keys, "vectors": self._vectors})
