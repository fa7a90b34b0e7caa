"""FAISS indexes behind the `VectorIndex` protocol.

Small pools have a flat index, larger ones inverted lists with a scalar quantiser.
"""

from __future__ import annotations

from typing import Any, Self

import faiss
import numpy as np

from backend.errors import IndexBroken
from backend.recall.indexes.index import Keys, Vectors

TRAINING_VECTORS_PER_LIST = 40
"""FAISS warns below 39; more brings nothing here and costs seconds."""


def lists_for(count: int) -> int:
    """How many inverted lists suit a pool: the power of two at or below 4 sqrt(n), so 1024 at 100,000."""
    return int(2 ** np.floor(np.log2(max(4 * np.sqrt(count), 1))))


class FaissIndex:
    """One FAISS index with our keys. Searching is safe from several threads; changing it is not."""

    def __init__(self, index: Any, factory: str, threads: int) -> None:
        self._index, self._factory, self._threads = index, factory, threads

    @classmethod
    def flat(cls, keys: Keys, vectors: Vectors, *, threads: int) -> FaissIndex:
        """Build the exact index, which compares every vector."""
        index = faiss.IndexIDMap2(faiss.IndexFlatIP(vectors.shape[1]))
        built = cls(index, "exact", threads)
        built.add(keys, vectors)
        return built

    @classmethod
    def inverted(cls, keys: Keys, vectors: Vectors, *, storage: str, threads: int) -> FaissIndex:
        """Build an IVF index; storage is 'SQ8' (one byte per coordinate) or 'Flat'.

        Trains k-means on a sample.
        """
        lists = lists_for(len(vectors))
        factory = f"IVF{lists},{storage}"
        faiss.omp_set_num_threads(threads)
        index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        sample = _every_nth(vectors, lists * TRAINING_VECTORS_PER_LIST)
        index.train(sample)
        built = cls(index, factory, threads)
        built.add(keys, vectors)
        return built

    @classmethod
    def restore(cls, dumped: bytes, *, factory: str, threads: int) -> FaissIndex:
        """Restore an index from the bytes of `dump`. Raises IndexBroken if FAISS can't read them."""
        try:
            index = faiss.deserialize_index(np.frombuffer(dumped, dtype=np.uint8))
        except RuntimeError as broken:
            raise IndexBroken("FAISS can't read the stored index.") from broken
        return cls(index, factory, threads)

    @property
    def factory(self) -> str:
        """FAISS's index factory string, or 'exact'."""
        return self._factory

    @property
    def name(self) -> str:
        return "exact" if self.exact else "ivf"

    @property
    def kind(self) -> str:
        return self._factory if self.exact else f"{self._factory} nprobe {self.effort}"

    @property
    def bare(self) -> Any:
        """Return the FAISS index itself, so that a benchmark can measure it alone."""
        return self._index

    @property
    def exact(self) -> bool:
        return self._factory == "exact"

    @property
    def effort(self) -> int:
        """Inverted lists searched per query (nprobe); 1 for the flat index."""
        return 1 if self.exact else int(self._index.nprobe)

    @effort.setter
    def effort(self, effort: int) -> None:
        if self.exact:
            raise ValueError("the exact index has no inverted lists")
        self._index.nprobe = effort

    @property
    def efforts(self) -> tuple[int, ...]:
        """Powers of two up to an eighth of the lists.

        Beyond that a ScanIndex is faster and finds more.
        """
        if self.exact:
            return (1,)
        return tuple(1 << power for power in range(3, self.lists.bit_length()) if 1 << power <= self.lists // 8)

    def suits(self, count: int) -> bool:
        return self.exact or lists_for(count) == self.lists

    @property
    def lists(self) -> int:
        """How many inverted lists there are; 1 for the flat index."""
        return 1 if self.exact else int(self._index.nlist)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, Keys]:
        faiss.omp_set_num_threads(self._threads)  # OpenMP keeps this setting per calling thread: set it in each
        scores, keys = self._index.search(queries, k)
        return scores, keys

    def add(self, keys: Keys, vectors: Vectors) -> None:
        faiss.omp_set_num_threads(self._threads)
        self._index.add_with_ids(np.ascontiguousarray(vectors), keys)

    def remove(self, keys: Keys) -> int:
        return int(self._index.remove_ids(keys)) if len(keys) else 0

    def copy(self) -> Self:
        return type(self)(faiss.clone_index(self._index), self._factory, self._threads)

    def dump(self) -> bytes:
        return bytes(faiss.serialize_index(self._index).data)


def _every_nth(vectors: Vectors, wanted: int) -> Vectors:
    """About `wanted` vectors spread over the whole pool, which is ordered by age."""
    return np.ascontiguousarray(vectors[:: max(len(vectors) // wanted, 1)])
