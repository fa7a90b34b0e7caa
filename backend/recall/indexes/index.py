"""The interface of an index of article vectors. A larger inner product is nearer."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

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
        ...

    def __getitem__(self, rows: Any, /) -> Any:
        """The rows of a slice, or of an array of row numbers."""
        ...


class VectorIndex(Protocol):
    """An index that is built once and then only searched.

    A change is made to a `copy`, so a search keeps its snapshot.
    """

    @property
    def name(self) -> str:
        """Its name in `selection.INDEXES`: 'exact', 'ivf' or 'fastscan'."""
        ...

    @property
    def kind(self) -> str:
        """Description for the log and the console, such as 'exact' or 'IVF1024,SQ8 nprobe 64'."""
        ...

    @property
    def exact(self) -> bool:
        """Whether results are the true nearest neighbours, so that recall need not be checked."""
        ...

    def __len__(self) -> int: ...

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, Keys]:
        """The k nearest of each query [c, D]: scores [c, k], best first, and keys [c, k], padded with NO_KEY."""
        ...

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add vectors under new keys."""
        ...

    def remove(self, keys: Keys) -> int:
        """Remove keys; returns how many were present."""
        ...

    def copy(self) -> Self:
        """An independent index with the same content."""
        ...

    @property
    def factory(self) -> str:
        """FAISS's index factory string without its tuning, or 'exact'."""
        ...

    @property
    def efforts(self) -> tuple[int, ...]:
        """The values of `effort` worth trying, ascending; a single one if there is nothing to tune."""
        ...

    @property
    def effort(self) -> int:
        """How much of the index a search covers (nprobe of IVF, k_factor of FastScan's reranking)."""
        ...

    @effort.setter
    def effort(self, effort: int) -> None: ...

    def suits(self, count: int) -> bool:
        """Whether its structure still fits a pool of this size."""
        ...

    def dump(self) -> bytes:
        """The index as bytes; `backend.recall.indexes.store` stores them."""
        ...
