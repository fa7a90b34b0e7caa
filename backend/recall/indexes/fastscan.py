"""Scans all articles as four-bit codes, then ranks the best again by their exact inner products.

Product quantisation with 16 centroids per pair of coordinates (FAISS FastScan: Andre, Kermarrec, Le Scouarnec 2017),
and exact reranking of `effort` times as many articles as requested. Unlike inverted lists it works equally well for any
query: interest vectors under noise are mixtures, and the articles nearest to a mixture are spread over hundreds of
lists.
"""

from __future__ import annotations

from typing import Any, Self

import faiss
import numpy as np

from backend.errors import IndexBroken
from backend.recall.indexes.index import NO_KEY, Keys, Vectors
from protocol.tensors import TensorError, TensorSpec, pack, unpack

EFFORTS = (2, 3, 4, 5, 6, 8, 12, 16)
COORDINATES_PER_CODE = 2
CODE_BITS = 4
TRAINING_VECTORS = 8_192
DUMP_LIMIT_BYTES = 8 * 1024**3


class ScanIndex:
    """FastScan with exact reranking. Searching is safe from several threads; changing it is not."""

    name = "fastscan"

    def __init__(self, codes: Any, keys: Keys, vectors: Vectors, threads: int, effort: int = EFFORTS[0]) -> None:
        self._codes, self._keys, self._vectors, self._threads, self.effort = codes, keys, vectors, threads, effort
        self._assemble()

    @classmethod
    def over(cls, keys: Keys, vectors: Vectors, *, threads: int) -> ScanIndex:
        """Train the codes on a sample and index everything. D must be even."""
        dimensions = vectors.shape[1]
        if dimensions % COORDINATES_PER_CODE:
            raise ValueError(f"vectors have {dimensions} dimensions; each code covers {COORDINATES_PER_CODE}")
        faiss.omp_set_num_threads(threads)
        codes = faiss.IndexPQ(dimensions, dimensions // COORDINATES_PER_CODE, CODE_BITS, faiss.METRIC_INNER_PRODUCT)
        codes.train(np.ascontiguousarray(vectors[:: max(len(vectors) // TRAINING_VECTORS, 1)]))
        codes.add(np.ascontiguousarray(vectors))
        return cls(codes, keys, vectors, threads)

    @classmethod
    def restore(cls, dumped: bytes, keys: Keys, vectors: Vectors, *, effort: int, threads: int) -> ScanIndex:
        """Restore an index from the bytes of `dump` and its vectors.

        Raises IndexBroken if they don't match.
        """
        specs = {"codes": TensorSpec("int8", (None,), DUMP_LIMIT_BYTES), "keys": TensorSpec("int64", (len(keys),))}
        try:
            parts = unpack(dumped, specs, limit_bytes=DUMP_LIMIT_BYTES)
            codes = faiss.deserialize_index(parts["codes"].view(np.uint8))
        except (TensorError, RuntimeError) as broken:
            raise IndexBroken("The stored index can't be read.") from broken
        order = np.searchsorted(keys, parts["keys"]).clip(max=len(keys) - 1)
        if (keys[order] != parts["keys"]).any() or codes.ntotal != len(keys):
            raise IndexBroken("The stored index holds different articles.")
        return cls(codes, parts["keys"], vectors[order], threads, effort)

    @property
    def kind(self) -> str:
        return f"{self.factory} effort {self.effort}"

    @property
    def factory(self) -> str:
        """FAISS's index factory string, such as `PQ64x4fs,RFlat`."""
        return f"PQ{self._codes.pq.M}x{CODE_BITS}fs,RFlat"

    @property
    def bare(self) -> Any:
        """The FAISS index itself, so that a benchmark can measure it alone."""
        return self._searcher

    @property
    def exact(self) -> bool:
        return False

    @property
    def efforts(self) -> tuple[int, ...]:
        """How many times more articles than requested are ranked exactly."""
        return EFFORTS

    def suits(self, count: int) -> bool:
        """True: codes fit a pool of any size.

        The share of changed articles decides when to train again.
        """
        return count > 0

    def __len__(self) -> int:
        return len(self._keys)

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, Keys]:
        faiss.omp_set_num_threads(self._threads)  # OpenMP keeps this setting per calling thread: set it in each
        wider = faiss.IndexRefineSearchParameters(k_factor=float(self.effort))  # type: ignore[call-arg]
        scores, places = self._searcher.search(queries, k, params=wider)
        keys = self._keys[places]
        if places.size and places[:, -1].min() < 0:
            keys[places < 0] = NO_KEY
        return scores, keys

    def add(self, keys: Keys, vectors: Vectors) -> None:
        if len(keys):
            self._codes.add(np.ascontiguousarray(vectors))
            self._keys, self._vectors = np.concatenate([self._keys, keys]), np.concatenate([self._vectors, vectors])
            self._assemble()

    def remove(self, keys: Keys) -> int:
        removed = np.isin(self._keys, keys)
        if removed.any():
            self._codes.remove_ids(np.flatnonzero(removed))
            self._keys, self._vectors = self._keys[~removed], self._vectors[~removed]
            self._assemble()
        return int(removed.sum())

    def copy(self) -> Self:
        return type(self)(faiss.clone_index(self._codes), self._keys, self._vectors, self._threads, self.effort)

    def dump(self) -> bytes:
        """See VectorIndex. The vectors are not included: the database has them."""
        return pack({"codes": faiss.serialize_index(self._codes).view(np.int8), "keys": self._keys})

    def _assemble(self) -> None:
        """Lay out the codes for scanning, with the full vectors behind them for reranking."""
        self._scanner = faiss.IndexPQFastScan(self._codes)
        self._exact = faiss.IndexFlatIP(self._codes.d)
        self._exact.add(np.ascontiguousarray(self._vectors))
        self._searcher = faiss.IndexRefine(self._scanner, self._exact)
