"""Simulated readers: rows of a dataset as the sample source that a device's task draws from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.training.samples import Samples
from experiments.datasets.samples import TrainingSamples

Features = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]
"""(clicks [b, H], candidates [b, R], rows of the catalogue; padding is one past the last) -> features [b, R, F]."""


@dataclass(frozen=True)
class FeaturedSamples(Samples):
    """Samples with what a feature ranker sees of each candidate, [n, 1 + K, F]."""

    features: NDArray[np.float32]


@dataclass(frozen=True)
class Library:
    """News vectors [n + 1, D], the last row zeros for padding, and the features of candidates, if any."""

    vectors: NDArray[np.float32]
    features: Features | None = None

    @classmethod
    def of(cls, vectors: NDArray[np.float32], features: Features | None = None) -> Library:
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
        found = (self.vectors[clicks], mask, self.vectors[candidates])
        return FeaturedSamples(*found, self.features(clicks, candidates)) if self.features else Samples(*found)


@dataclass(frozen=True)
class SimulatedReader:
    """One reader's samples; a SampleSource."""

    samples: TrainingSamples
    reader: int
    library: Library

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator) -> Samples:
        """At most `limit` of the reader's samples in a random order, with negatives drawn afresh."""
        rows = rng.permutation(self.samples.of_reader(self.reader))[:limit]
        return self.library.samples(self.samples.clicks[rows], self.samples.candidates(rows, negatives, rng))


def batch_of(samples: Samples, rows: slice) -> Mapping[str, NDArray[np.float32]]:
    """The inputs of a ranker's gradient graph."""
    batch = {name: getattr(samples, name)[rows] for name in ("clicks", "click_mask", "candidates")}
    if isinstance(samples, FeaturedSamples):
        batch["features"] = samples.features[rows]
    return batch
