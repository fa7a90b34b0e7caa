"""FINDING's groups on the device: which of a ranker's group models is this reader's (CIKM 2023, section 4.2).

The device finds its group by itself and tells nobody. All devices fetch all groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.ranking.padding import left_padded
from device_app.ranking.session import GraphSession, usable

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class GroupModels:
    """A ranker's groups as a release brings them (`wire.releases.Groups`).

    weights: each parameter [K, *shape]; centroids and next_centroids [K, D]; vectors and next_vectors: the global
    weights that user vectors are computed with for each of the two.
    """

    weights: Weights
    centroids: NDArray[np.float32]
    vectors: Weights
    next_centroids: NDArray[np.float32]
    next_vectors: Weights

    @property
    def size(self) -> int:
        """K: how many groups there are."""
        return len(self.centroids)

    def of(self, group: int) -> Weights:
        """The weights of one group."""
        return {name: block[group] for name, block in self.weights.items()}


@dataclass(frozen=True)
class OwnGroup:
    """Which of a ranker's groups this device has chosen for its reader, counted from 0, and out of how many.

    Sensitive: it says what the reader reads, and is shown to the reader alone.
    """

    ranker: str
    group: int
    groups: int


class ReaderVector:
    """The vector that a ranker gives a reader: its scores of the D axes of the news space, at length 1.

    For a ranker whose score is an inner product with a user vector, that is the user vector; for one that weighs clicks
    by the candidate, what comes closest to one. Features count as zeros.

    Args:
        graph: a `score` graph.
        weights: which weights speak.
        features: how many the graph takes.
    """

    def __init__(self, graph: bytes, weights: Weights, *, features: int, threads: int = 1) -> None:
        self._session = GraphSession(graph, weights, threads=threads)
        self._features = features

    def __call__(self, clicks: NDArray[np.float32]) -> NDArray[np.float32]:
        """[D] from clicks [H, D], oldest first; a zero vector stays zero, and stands for scores that can't be had."""
        padded, mask = left_padded(clicks)
        axes = np.eye(clicks.shape[1], dtype=np.float32)[None]
        inputs = {"clicks": padded, "click_mask": mask, "candidates": axes}
        if self._features:
            inputs["features"] = np.zeros((1, clicks.shape[1], self._features), dtype=np.float32)
        none = np.zeros(clicks.shape[1], dtype=np.float32)
        vector = usable(lambda: self._session(**inputs)["scores"][0], none, "the reader's vector").astype(np.float64)
        length = float(np.linalg.norm(vector))
        return np.asarray(vector / length if length > 0 else vector, dtype=np.float32)


def nearest_group(centroids: NDArray[np.float32], vector: NDArray[np.float32]) -> int:
    """The centroid of greatest inner product; the first of equals, so a zero vector's group is 0."""
    return int(np.argmax(centroids @ vector))


class GroupChoice:
    """Which group a reader is in, by the centroids in force and by the draft of the next."""

    def __init__(self, graph: bytes, groups: GroupModels, *, features: int, threads: int = 1) -> None:
        self._groups = groups
        self._now = ReaderVector(graph, groups.vectors, features=features, threads=threads)
        self._next = ReaderVector(graph, groups.next_vectors, features=features, threads=threads)

    def in_force(self, clicks: NDArray[np.float32]) -> int:
        """The group whose model this reader ranks with; 0 without clicks."""
        return nearest_group(self._groups.centroids, self._now(clicks)) if len(clicks) else 0

    def drafted(self, clicks: NDArray[np.float32]) -> tuple[int, NDArray[np.float32]]:
        """The group by the draft, and the vector [D] that it was found with. clicks: at least one."""
        vector = self._next(clicks)
        return nearest_group(self._groups.next_centroids, vector), vector
