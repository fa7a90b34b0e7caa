"""The local ranker: how well candidates fit the reader's clicks, by a graph of the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from device_app.errors import GraphMismatch
from device_app.ranking.features import FEATURES, FeatureContext, feature_columns
from device_app.ranking.padding import left_padded
from device_app.ranking.session import GraphSession

FEATURES_INPUT = "features"


class Ranker:
    """Scores candidates with a `score` graph.

    Args:
        graph: the graph with its parameters.
        name: of the model in its release.
        features: what the graph's input `features` holds, in order; none for a graph without that input.

    Raises GraphMismatch if graph and features do not fit, or for a feature that this program does not compute.
    """

    def __init__(self, graph: GraphSession, *, name: str, features: tuple[str, ...] = ()) -> None:
        if unknown := [each for each in features if each not in FEATURES]:
            raise GraphMismatch(f"feature {unknown[0]} of {name}: this program does not compute it")
        if (FEATURES_INPUT in graph.inputs) != bool(features):
            declared = "declares" if FEATURES_INPUT in graph.inputs else "does not declare"
            named = ", ".join(features) or "none"
            raise GraphMismatch(f"input {FEATURES_INPUT} of {name}: the graph {declared} it; features named: {named}")
        self._graph = graph
        self.name = name
        self.features = features

    def with_views(self, views: object) -> Ranker:
        """This one: it weighs clicks, and features of them, whatever other views a reader has."""
        return self

    def with_own(self, parameters: Callable[[str], Mapping[str, NDArray[np.float32]]]) -> Ranker:
        """The same for one reader: its own private parameters, by the model's name, if the model has any."""
        if not self._graph.private:
            return self
        return Ranker(self._graph.with_private(parameters(self.name)), name=self.name, features=self.features)

    def score(
        self,
        clicks: NDArray[np.float32],
        candidates: NDArray[np.float32],
        context_features: FeatureContext | None = None,
    ) -> NDArray[np.float32]:
        """clicks [H, D] oldest first, candidates [R, D] -> scores [R], higher fits better.

        A ranker with features needs the context of the same candidates and clicks; without clicks its features
        decide. Other rankers give zeros without clicks. Raises GraphMismatch for scores that are not finite.
        """
        if not len(candidates) or not (len(clicks) or self.features):
            return np.zeros(len(candidates), dtype=np.float32)
        padded, mask = left_padded(clicks)
        inputs = {"clicks": padded, "click_mask": mask, "candidates": candidates[None].astype(np.float32, copy=False)}
        if self.features:
            if context_features is None:
                raise ValueError(f"context: {self.name} weighs {', '.join(self.features)} and needs it")
            inputs[FEATURES_INPUT] = feature_columns(self.features, context_features)[None]
        scores = np.asarray(self._graph(**inputs)["scores"][0], dtype=np.float32)
        if not np.isfinite(scores).all():
            raise GraphMismatch(f"scores of {self.name}: not finite; clicks or candidates hold NaN or huge values")
        return scores

    def contributions(
        self,
        clicks: NDArray[np.float32],
        candidates: NDArray[np.float32],
        context_features: FeatureContext,
    ) -> dict[str, NDArray[np.float64]]:
        """What each feature adds to `score`, [R] by name; empty for a ranker without features.

        Features enter a score by one weight each (models/user/feature_ranker.py); the weights are read off the graph by
        scoring one candidate with each feature alone. What they leave of a score is the fit to the clicks.
        """
        if not self.features or not len(candidates):
            return {}
        padded, mask = left_padded(clicks)
        alone = np.concatenate([np.zeros((1, len(self.features))), np.eye(len(self.features))]).astype(np.float32)
        same = np.repeat(candidates[:1].astype(np.float32, copy=False), len(alone), axis=0)
        inputs = {"clicks": padded, "click_mask": mask, "candidates": same[None], FEATURES_INPUT: alone[None]}
        found = np.asarray(self._graph(**inputs)["scores"][0], dtype=np.float64)
        columns = feature_columns(self.features, context_features).astype(np.float64)
        weights = found[1:] - found[0]
        return {name: weights[column] * columns[:, column] for column, name in enumerate(self.features)}
