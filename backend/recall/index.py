"""What any index of news vectors can do. Larger inner product is nearer."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""float32 [n, D]"""
Keys = NDArray[np.int64]
"""int64 [n]: the catalogue's names for vectors, 0 or more; they stay the same from one snapshot to the next."""
NO_KEY = -1
"""Fills a result that is shorter than asked."""


class VectorRows(Protocol):
    """Vectors [n, D] that are read by rows: an array, or `stored_vectors.StoredVectors`."""

    def __len__(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """[n, D]"""
        ...

    def __getitem__(self, rows: Any, /) -> Any:
        """Those of a slice, or of an array of rows."""
        ...


class VectorIndex(Protocol):
    """An index is filled once, then only searched: a change goes into a `copy`, so that a search keeps its snapshot."""

    @property
    def name(self) -> str:
        """Its name in `index_selection.INDEXES`: 'exact', 'ivf' or 'fastscan'."""
        ...

    @property
    def kind(self) -> str:
        """What it is, for the log and the console: 'exact', 'IVF1024,SQ8 nprobe 64'."""
        ...

    @property
    def exact(self) -> bool:
        """Whether results are the true nearest, so that no gate is needed."""
        ...

    def __len__(self) -> int: ...

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, Keys]:
        """The k nearest of each query [c, D]: scores [c, k], best first, and keys [c, k], NO_KEY where none is left."""
        ...

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Add vectors under new keys."""
        ...

    def remove(self, keys: Keys) -> int:
        """Take keys out; returns how many were there."""
        ...

    def copy(self) -> Self:
        """An independent index with the same content."""
        ...

    @property
    def factory(self) -> str:
        """FAISS's name of the structure without its tuning, or 'exact'."""
        ...

    @property
    def efforts(self) -> tuple[int, ...]:
        """The settings of `effort` worth trying, ascending; one only where there is nothing to tune."""
        ...

    @property
    def effort(self) -> int:
        """How much of the index a search looks at (nprobe of IVF, the k_factor of FastScan's refinement)."""
        ...

    @effort.setter
    def effort(self, effort: int) -> None: ...

    def suits(self, count: int) -> bool:
        """Whether its structure still fits a pool of so many news."""
        ...

    def dump(self) -> bytes:
        """The index as bytes; `backend.recall.index_store` puts them on disk."""
        ...
