"""A ranker with a model for each group of readers, by the one that this reader is in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.ranking.features import FeatureContext
from device_app.ranking.groups import GroupChoice, GroupModels
from device_app.ranking.ranker import Ranker
from device_app.ranking.session import GraphSession


class GroupRanker:
    """Chooses the group by the clicks it ranks with, and ranks with that group's weights.

    It keeps nothing of any reader, so the devices of a fleet share one. Raises GraphMismatch as `Ranker`.
    """

    def __init__(
        self, graph: bytes, groups: GroupModels, *, name: str, features: tuple[str, ...] = (), threads: int = 1
    ) -> None:
        self.name, self.features = name, features
        self._choice = GroupChoice(graph, groups, features=len(features), threads=threads)
        self._rankers = [
            Ranker(GraphSession(graph, groups.of(group), threads=threads), name=name, features=features)
            for group in range(groups.size)
        ]

    def group(self, clicks: NDArray[np.float32]) -> int:
        """Which group a reader with these clicks [H, D] is in."""
        return self._choice.in_force(clicks)

    @property
    def groups(self) -> int:
        """K: how many groups the release has."""
        return len(self._rankers)

    def with_views(self, views: object) -> GroupRanker:
        """This one: it weighs clicks, whatever other views a reader has."""
        return self

    def with_own(self, parameters: object) -> GroupRanker:
        """This one: no parameter of a grouped ranker is private."""
        return self

    def score(
        self,
        clicks: NDArray[np.float32],
        candidates: NDArray[np.float32],
        context_features: FeatureContext | None = None,
    ) -> NDArray[np.float32]:
        """As `Ranker.score`, by the model of the reader's group."""
        return self._rankers[self.group(clicks)].score(clicks, candidates, context_features)

    def contributions(
        self, clicks: NDArray[np.float32], candidates: NDArray[np.float32], context_features: FeatureContext
    ) -> dict[str, NDArray[np.float64]]:
        """As `Ranker.contributions`, by the model of the reader's group."""
        return self._rankers[self.group(clicks)].contributions(clicks, candidates, context_features)
