"""Finds the articles nearest to interest vectors exactly, with one coordinate per basic interest.

An interest vector is a mixture of the basic interests' values, r = sum_i w_i v_i (`decode.aggregate`), so it lies in
their span. With Q [D, S] an orthonormal basis of that span, S <= B, <r, d> = <Q^T r, Q^T d> for every article d: its 30
coordinates suffice for any report, instead of its vector's 256. Popularity is one more coordinate, so that lists by
similarity and popularity (`RANKINGS` of the service) are exact over the whole pool, too.

Symbols: C channels, B basis size, D dimensions, S coordinates, n articles.
"""

import threading
from typing import Self
from weakref import WeakKeyDictionary

import faiss
import numpy as np
from numpy.typing import NDArray

from backend.recall.catalogue import Catalogue
from backend.recall.indexes.index import VectorRows

ROWS_AT_ONCE = 16_384
"""Vectors converted to coordinates at a time: 16 MB of a mapped file."""
BASES_KEPT = 3
"""Scans kept per catalogue: after a release devices use two bases for a while, and a codebook may be searched, too."""

Floats = NDArray[np.float32]


class BasisScan:
    """One pool under one basis, in a flat FAISS index. Immutable and safe for several threads.

    coordinates is [n, S + 1]: Q^T d followed by log pop(d); axes is Q^T [S, D].
    """

    def __init__(self, axes: Floats, coordinates: Floats, *, threads: int = 1) -> None:
        self._axes, self._threads = axes, threads
        self._index = faiss.IndexFlatIP(coordinates.shape[1])
        self._index.add(coordinates)

    @classmethod
    def over(cls, values: Floats, vectors: VectorRows, log_popularity: Floats, *, threads: int = 1) -> Self:
        """Build the scan of vectors [n, D] with log_popularity [n] for mixtures of values [B, D].

        Nearly dependent values cost no accuracy: Q comes from the singular value decomposition, truncated at rounding
        error.
        """
        return cls._of(cls._axes_of(values), vectors, log_popularity, threads)

    def over_changed(self, vectors: VectorRows, found: NDArray[np.intp], log_popularity: Floats) -> Self:
        """Build the scan of the same basis over a changed pool, where row r is this scan's row found[r], or new if -1.

        Only new vectors are read; popularity is replaced for all rows.
        """
        coordinates = self._coordinates[found]
        new = np.flatnonzero(found < 0)
        for start in range(0, len(new), ROWS_AT_ONCE):
            some = new[start : start + ROWS_AT_ONCE]
            coordinates[some, :-1] = vectors[some] @ self._axes.T
        coordinates[:, -1] = log_popularity
        return type(self)(self._axes, coordinates, threads=self._threads)

    @staticmethod
    def _axes_of(values: Floats) -> Floats:
        _, sizes, axes = np.linalg.svd(values.astype(np.float64), full_matrices=False)
        rank = int((sizes > max(values.shape) * np.finfo(np.float32).eps * sizes.max(initial=0.0)).sum())
        return np.ascontiguousarray(axes[:rank], dtype=np.float32)

    @classmethod
    def _of(cls, narrow: Floats, vectors: VectorRows, log_popularity: Floats, threads: int) -> Self:
        coordinates = np.empty((len(vectors), len(narrow) + 1), dtype=np.float32)
        for start in range(0, len(vectors), ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            coordinates[block, :-1] = vectors[block] @ narrow.T
        coordinates[:, -1] = log_popularity
        return cls(narrow, coordinates, threads=threads)

    @property
    def _coordinates(self) -> Floats:
        """The index's coordinates, without a copy."""
        held: Floats = faiss.rev_swig_ptr(self._index.get_xb(), len(self) * self._index.d)
        return held.reshape(len(self), self._index.d)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def bytes_held(self) -> int:
        """Bytes of coordinates and axes."""
        return 4 * len(self) * int(self._index.d) + self._axes.nbytes

    def search(self, queries: Floats, k: int) -> list[list[int]]:
        """For each query v [C, D] in the basis's span, the k rows with the greatest <v, d>, best first."""
        return self._best(queries @ self._axes.T, k, popularity=0.0)

    def popular_near(self, queries: Floats, k: int, *, sharpness: float) -> list[list[int]]:
        """For each query v [C, D] in the span, the k rows with the greatest s <v, d> + log pop(d), best first."""
        return self._best(np.float32(sharpness) * (queries @ self._axes.T), k, popularity=1.0)

    def _best(self, narrow: Floats, k: int, *, popularity: float) -> list[list[int]]:
        """Return rows by descending score; rows with equal scores in ascending order."""
        k = min(k, len(self))
        if not k:
            return [[] for _ in narrow]
        queries = np.column_stack([narrow, np.full(len(narrow), popularity)]).astype(np.float32)
        faiss.omp_set_num_threads(self._threads)  # OpenMP keeps this setting per calling thread: set it in each
        scores, rows = self._index.search(queries, k)
        in_order = np.lexsort((rows, -scores), axis=1)
        best: list[list[int]] = np.take_along_axis(rows, in_order, axis=1).tolist()
        return best


class BasisScanStore:
    """Scans by catalogue and basis, built on first use or in advance, and kept as long as their catalogue.

    For a catalogue that shares its vectors with a previous one, the scan is derived from the previous scan.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._kept: WeakKeyDictionary[Catalogue, tuple[tuple[bytes, BasisScan], ...]] = WeakKeyDictionary()
        self._making = threading.Lock()

    def of(self, catalogue: Catalogue, values: Floats) -> BasisScan:
        """The scan of this catalogue for mixtures of values [B, D]: a release's basis, or a codebook's prototypes."""
        basis = values.tobytes()
        found = self._find(catalogue, basis)
        if found is not None:
            return found
        with self._making:
            found = self._find(catalogue, basis)
            if found is None:
                found = self._changed(catalogue, basis) or BasisScan.over(
                    values, catalogue.vectors, catalogue.log_popularity, threads=self._threads
                )
                self._kept[catalogue] = (*self._kept.get(catalogue, ()), (basis, found))[-BASES_KEPT:]
            return found

    def _find(self, catalogue: Catalogue, basis: bytes) -> BasisScan | None:
        return next((scan for of, scan in self._kept.get(catalogue, ()) if of == basis), None)

    def _changed(self, catalogue: Catalogue, basis: bytes) -> BasisScan | None:
        for before in reversed(list(self._kept)):
            scan = self._find(before, basis)
            found = None if scan is None else catalogue.vectors.found_in(before.vectors)
            if scan is not None and found is not None:
                return scan.over_changed(catalogue.vectors, found, catalogue.log_popularity)
        return None
