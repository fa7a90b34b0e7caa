"""Simulated readers: rows of a dataset as the sample source for a device's task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.training.samples import Samples
from experiments.datasets.samples import TrainingSamples

FeatureFunction = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]
"""(clicks [b, H], candidates [b, R], rows of the catalogue; padding is one past the last) -> features [b, R, F]."""


@dataclass(frozen=True)
class Library:
    """News vectors [n + 1, D], the last row zeros for padding, and the features of candidates, if any."""

    vectors: NDArray[np.float32]
    features: FeatureFunction | None = None

    @classmethod
    def of(cls, vectors: NDArray[np.float32], features: FeatureFunction | None = None) -> Library:
        """Return the library of vectors [n, D] without the padding row.

        Raises ValueError for vectors that are not finite.
        """
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise ValueError(f"vectors must be finite and have shape [n, D], got shape {vectors.shape}")
        return cls(np.concatenate([vectors, np.zeros_like(vectors[:1])]).astype(np.float32), features)

    @property
    def padding(self) -> int:
        return len(self.vectors) - 1

    def samples(self, clicks: NDArray[np.int64], candidates: NDArray[np.int64]) -> Samples:
        """Return samples with vectors in place of rows: clicks [b, H], candidates [b, 1 + K]."""
        mask = (clicks != self.padding).astype(np.float32)
        features = self.features(clicks, candidates) if self.features else None
        return Samples(self.vectors[clicks], mask, self.vectors[candidates], features)


@dataclass(frozen=True)
class SimulatedReader:
    """One reader's samples; a SampleSource."""

    samples: TrainingSamples
    reader: int
    library: Library

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Return at most `limit` of the reader's samples in random order, with new negatives.

        Features are the library's. Raises ValueError if features are requested and the library has none, or the
        reverse.
        """
        if bool(features) != (self.library.features is not None):
            built = "without" if self.library.features is None else "with"
            raise ValueError(f"features: {features or 'none'} requested, but the library was made {built} features")
        rows = rng.permutation(self.samples.of_reader(self.reader))[:limit]
        return self.library.samples(self.samples.clicks[rows], self.samples.candidates(rows, negatives, rng))
