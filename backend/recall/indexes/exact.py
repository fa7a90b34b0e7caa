"""The reference: plain NumPy inner products, against which every other index is measured."""

from __future__ import annotations

from typing import Self

import numpy as np

from backend.recall.indexes.index import NO_KEY, Keys, VectorRows, Vectors
from protocol.tensors import pack

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
        """'exact'"""
        return "exact"

    @property
    def exact(self) -> bool:
        """True"""
        return True

    name = "exact"
    factory = "exact"
    efforts = (1,)
    effort = 1

    def suits(self, count: int) -> bool:
        """True"""
        return True

    def __len__(self) -> int:
        return len(self._keys)

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, Keys]:
        """See VectorIndex."""
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
        """See VectorIndex."""
        joined = np.concatenate([self._keys, keys])
        order = np.argsort(joined)
        self._keys, self._vectors = joined[order], np.concatenate([self._vectors, vectors])[order]

    def remove(self, keys: Keys) -> int:
        """See VectorIndex."""
        stay = ~np.isin(self._keys, keys)
        self._keys, self._vectors = self._keys[stay], self._vectors[stay]
        return int((~stay).sum())

    def copy(self) -> Self:
        """See VectorIndex."""
        twin = type(self)(self._vectors.shape[1])
        twin._keys, twin._vectors = self._keys, self._vectors  # replaced, never written into
        return twin

    def dump(self) -> bytes:
        """See VectorIndex."""
        return pack({"keys": self._keys, "vectors": self._vectors})
