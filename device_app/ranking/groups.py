"""Rankers with one model per group of readers (FINDING, CIKM 2023, section 4.2).

The device determines its reader's group locally and reveals it to nobody; all devices download all groups.
`GroupRanker` ranks with the model of that group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.ranking.padding import left_padded
from device_app.ranking.ranker import FeatureContext, Ranker
from device_app.ranking.session import GraphSession, usable

Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class GroupModels:
    """The group models of a release's ranker (`protocol.releases.Groups`).

    weights: each parameter [K, *shape]. centroids and next_centroids are [K, D]. vectors and next_vectors are the
    global weights from which user vectors are computed, for the current and the next centroids.
    """

    weights: Weights
    centroids: NDArray[np.float32]
    vectors: Weights
    next_centroids: NDArray[np.float32]
    next_vectors: Weights

    @property
    def size(self) -> int:
        """K: the number of groups."""
        return len(self.centroids)

    def of(self, group: int) -> Weights:
        return {name: block[group] for name, block in self.weights.items()}


@dataclass(frozen=True)
class OwnGroup:
    """The group this device chose for its reader, counted from 0, and the number of groups.

    Sensitive: it reveals what the reader reads, and is shown to the reader alone.
    """

    ranker: str
    group: int
    groups: int


class ReaderVector:
    """Computes a reader's vector: a ranker's scores of the D unit vectors, scaled to length 1.

    If a ranker's score is an inner product with a user vector, this is the user vector; if the score weighs clicks
    depending on the candidate, this is the closest equivalent. Features count as zeros.

    Args:
        graph: a `score` graph.
        weights: the weights to score with.
        features: number of features the graph takes.
    """

    def __init__(self, graph: bytes, weights: Weights, *, features: int, threads: int = 1) -> None:
        self._session = GraphSession(graph, weights, threads=threads)
        self._features = features

    def __call__(self, clicks: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return [D] from clicks [H, D], oldest first; zeros if the scores are zero or unusable."""
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
    """Return the index of the centroid with the largest inner product.

    Ties go to the first, so a zero vector gets 0.
    """
    return int(np.argmax(centroids @ vector))


class GroupChoice:
    """Determines a reader's group, by the current centroids and by the next ones, which are a draft."""

    def __init__(self, graph: bytes, groups: GroupModels, *, features: int, threads: int = 1) -> None:
        self._groups = groups
        self._now = ReaderVector(graph, groups.vectors, features=features, threads=threads)
        self._next = ReaderVector(graph, groups.next_vectors, features=features, threads=threads)

    def in_force(self, clicks: NDArray[np.float32]) -> int:
        """Return the group whose model this reader ranks with; 0 without clicks."""
        return nearest_group(self._groups.centroids, self._now(clicks)) if len(clicks) else 0

    def drafted(self, clicks: NDArray[np.float32]) -> tuple[int, NDArray[np.float32]]:
        """Return the group by the draft centroids, and the vector [D] that determined it.

        clicks: at least one.
        """
        vector = self._next(clicks)
        return nearest_group(self._groups.next_centroids, vector), vector


class GroupRanker:
    """Determines the group from the clicks it ranks with, and ranks with that group's weights.

    everybody: the global weights, which rank for a reader without clicks.

    It stores nothing about any reader, so the devices of a fleet share one. Raises GraphMismatch like `Ranker`.
    """

    def __init__(
        self,
        graph: bytes,
        groups: GroupModels,
        *,
        everybody: Weights,
        name: str,
        features: tuple[str, ...] = (),
        threads: int = 1,
    ) -> None:
        self.name, self.features = name, features
        self._choice = GroupChoice(graph, groups, features=len(features), threads=threads)
        self._rankers = [
            Ranker(GraphSession(graph, weights, threads=threads), name=name, features=features)
            for weights in (*map(groups.of, range(groups.size)), everybody)
        ]

    def group(self, clicks: NDArray[np.float32]) -> int:
        """Return the group of a reader with these clicks [H, D]."""
        return self._choice.in_force(clicks)

    @property
    def groups(self) -> int:
        """K: the number of groups in the release."""
        return len(self._rankers) - 1

    def with_views(self, views: object) -> GroupRanker:
        """Return this ranker: it uses clicks only, and no other views."""
        return self

    def with_own(self, parameters: object) -> GroupRanker:
        """Return this ranker: grouped rankers have no private parameters."""
        return self

    def score(
        self,
        clicks: NDArray[np.float32],
        candidates: NDArray[np.float32],
        context_features: FeatureContext | None = None,
    ) -> NDArray[np.float32]:
        """Return what `Ranker.score` returns for the model of the reader's group."""
        return self._of(clicks).score(clicks, candidates, context_features)

    def contributions(
        self, clicks: NDArray[np.float32], candidates: NDArray[np.float32], context_features: FeatureContext
    ) -> dict[str, NDArray[np.float64]]:
        """Return what `Ranker.contributions` returns for the model of the reader's group."""
        return self._of(clicks).contributions(clicks, candidates, context_features)

    def _of(self, clicks: NDArray[np.float32]) -> Ranker:
        return self._rankers[self.group(clicks) if len(clicks) else -1]
