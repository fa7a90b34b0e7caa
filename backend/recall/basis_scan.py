"""The news nearest to interest vectors, exactly, by as many numbers a piece of news as there are basic interests.

An interest vector is a mixture of the basic interests' values, r = sum_i w_i v_i (`compose.aggregate`), so it lies in
their span. With Q [D, S] an orthonormal basis of that span, S <= B, <r, d> = <Q^T r, Q^T d> for every piece of news d:
30 numbers say of it all that any report can ask, where its vector has 256. Popularity is one more coordinate, so that
the lists by nearness and popularity (`RANKINGS` of the service) are those of the whole pool, too.

Symbols: C channels, B basis size, D dimensions, S coordinates, n news.
"""

from __future__ import annotations

import math
import threading
from typing import Self

import numpy as np
from numpy.typing import NDArray

from backend.recall.catalogue import Catalogue
from backend.recall.served_releases import ServedRelease

ROWS_AT_ONCE = 4_096
"""Half a megabyte of coordinates stays in the processor's cache until it is looked through, and products so small are
left to one thread by OpenBLAS: a million news under 30 interests take 15 ms of a core, in blocks of 16,384 twice that,
and on a busy machine many times that, while its threads wait for each other."""
SAMPLED = 64
"""One score of so many is looked at first, for a bound that the wanted ones are probably above."""
RANK_SLACK = 6.0
"""Standard deviations of the number of wanted scores in that sample by which the bound is set lower."""
SCANS_KEPT = 4
"""By catalogue and basis: two catalogues while one is being replaced, each under two bases after a release."""

Floats = NDArray[np.float32]


class BasisScan:
    """One pool under one basis. Safe to use from several threads; never changed.

    coordinates is [S + 1, n]: Q^T d, and below them log pop(d); axes is Q^T [S, D].
    """

    def __init__(self, axes: Floats, coordinates: Floats) -> None:
        self._axes, self._coordinates = axes, coordinates

    @classmethod
    def over(cls, values: Floats, vectors: Floats, log_popularity: Floats) -> Self:
        """The scan of vectors [n, D], with log_popularity [n], for mixtures of values [B, D].

        Values that are nearly dependent cost no accuracy: Q is of the singular value decomposition, cut at rounding.
        """
        _, sizes, axes = np.linalg.svd(values.astype(np.float64), full_matrices=False)
        rank = int((sizes > max(values.shape) * np.finfo(np.float32).eps * sizes.max(initial=0.0)).sum())
        narrow = np.ascontiguousarray(axes[:rank], dtype=np.float32)
        coordinates = np.empty((rank + 1, len(vectors)), dtype=np.float32)
        for start in range(0, len(vectors), ROWS_AT_ONCE):
            block = slice(start, start + ROWS_AT_ONCE)
            coordinates[:rank, block] = narrow @ vectors[block].T
        coordinates[rank] = log_popularity
        return cls(narrow, coordinates)

    def __len__(self) -> int:
        return int(self._coordinates.shape[1])

    @property
    def bytes_held(self) -> int:
        """Of coordinates and axes."""
        return self._coordinates.nbytes + self._axes.nbytes

    def search(self, queries: Floats, k: int) -> list[list[int]]:
        """For each query v [C, D] in the basis's span the k rows with the greatest <v, d>, best first."""
        return self._best(queries @ self._axes.T, k, popular=False)

    def popular_near(self, queries: Floats, k: int, *, sharpness: float) -> list[list[int]]:
        """For each query v [C, D] in the span the k rows with the greatest s <v, d> + log pop(d), best first."""
        return self._best(np.float32(sharpness) * (queries @ self._axes.T), k, popular=True)

    def _best(self, narrow: Floats, k: int, *, popular: bool) -> list[list[int]]:
        """Rows by their scores, equal ones by the lower row."""
        count = len(self)
        k = min(k, count)
        if not k:
            return [[] for _ in narrow]
        held = self._coordinates if popular else self._coordinates[:-1]
        weights = np.hstack([narrow, np.ones((len(narrow), 1), dtype=np.float32)]) if popular else narrow  # [C, S]
        bounds = self._bounds(weights, held, k)
        while True:
            rows, scores = _above(weights, held, bounds)
            short = [channel for channel, mine in enumerate(rows) if len(mine) < k]
            if not short:
                return [_ordered(*found, k) for found in zip(rows, scores, strict=True)]
            bounds[short] = -np.inf  # the sample misled: everything is looked at

    def _bounds(self, weights: Floats, held: Floats, k: int) -> Floats:
        """Scores [C] that probably more than k news are above, by a sample of them all."""
        sample = weights @ np.ascontiguousarray(held[:, ::SAMPLED])  # [C, n / SAMPLED]
        expected = k * sample.shape[1] / len(self)
        rank = math.ceil(expected + RANK_SLACK * math.sqrt(expected) + RANK_SLACK)
        if rank >= sample.shape[1]:
            return np.full(len(weights), -np.inf, dtype=np.float32)
        place = sample.shape[1] - rank
        return np.partition(sample, place, axis=1)[:, place].copy()


class BasisScanStore:
    """Scans by catalogue and basis, made on first use or before; the last SCANS_KEPT stay."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[Catalogue, bytes, BasisScan], ...] = ()
        self._making = threading.Lock()

    def of(self, catalogue: Catalogue, release: ServedRelease) -> BasisScan:
        """The scan of this catalogue under the release's basis; releases that share a basis share it."""
        basis = release.basis_values.tobytes()
        found = self._find(catalogue, basis)
        if found is not None:
            return found
        with self._making:
            found = self._find(catalogue, basis)
            if found is None:
                found = BasisScan.over(release.basis_values, catalogue.vectors, catalogue.log_popularity)
                self._kept = (*self._kept, (catalogue, basis, found))[-SCANS_KEPT:]
            return found

    def _find(self, catalogue: Catalogue, basis: bytes) -> BasisScan | None:
        return next((scan for kept, of, scan in self._kept if kept is catalogue and of == basis), None)


def _above(weights: Floats, held: Floats, bounds: Floats) -> tuple[list[NDArray[np.intp]], list[Floats]]:
    """The rows, ascending, whose scores reach each channel's bound, and the scores."""
    channels, rows, scores = [], [], []
    for start in range(0, held.shape[1], ROWS_AT_ONCE):
        products = weights @ held[:, start : start + ROWS_AT_ONCE]  # [C, rows]
        channel, row = np.nonzero(products >= bounds[:, None])
        channels.append(channel)
        rows.append(row + start)
        scores.append(products[channel, row])
    of, row, score = np.concatenate(channels), np.concatenate(rows), np.concatenate(scores)
    mine = [np.flatnonzero(of == channel) for channel in range(len(weights))]
    return [row[each] for each in mine], [score[each] for each in mine]


def _ordered(rows: NDArray[np.intp], scores: Floats, k: int) -> list[int]:
    best: list[int] = rows[np.argsort(-scores, kind="stable")[:k]].tolist()
    return best
