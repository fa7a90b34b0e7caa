"""Simulated readers: rows of a dataset as the sample source that a device's task draws from."""

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
        """From vectors [n, D] without the padding row. Raises ValueError for vectors that are not finite."""
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise ValueError(f"vectors must be finite and have shape [n, D], got shape {vectors.shape}")
        return cls(np.concatenate([vectors, np.zeros_like(vectors[:1])]).astype(np.float32), features)

    @property
    def padding(self) -> int:
        """The row that stands for no news."""
        return len(self.vectors) - 1

    def samples(self, clicks: NDArray[np.int64], candidates: NDArray[np.int64]) -> Samples:
        """Rows to vectors: clicks [b, H], candidates [b, 1 + K]."""
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
        """At most `limit` of the reader's samples in a random order, with negatives drawn afresh.

        Features are the library's. Raises ValueError if they are asked for and it has none, or the other way round.
        """
        if bool(features) != (self.library.features is not None):
            raise ValueError(f"features: {features or 'none'} asked for, which is not what the library was made with")
        rows = rng.permutation(self.samples.of_reader(self.reader))[:limit]
        return self.library.samples(self.samples.clicks[rows], self.samples.candidates(rows, negatives, rng))
