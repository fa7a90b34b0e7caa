"""Scores locally how well candidates fit the reader's clicks, by a graph of the release.

A ranker may also use features of a candidate, which the device computes from the reader's own data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import GraphMismatch
from device_app.ranking.padding import left_padded
from device_app.ranking.session import GraphSession

Names = NDArray[np.int64]
"""Names as numbers: equal names have equal numbers."""


@dataclass(frozen=True)
class FeatureContext:
    """R candidates with the reader's H clicks. Sensitive: it never leaves the device.

    sections and topics are [R], clicked_sections and clicked_topics [H]. recency [R] is 1 for articles published now
    and halves with every half-life. popularity [R], from -1 to 1, compares how often displays of an article lead to a
    click with the average: half the log of the ratio, by private counts (protocol.popularity); 0 if unknown.
    """

    sections: Names
    topics: Names
    clicked_sections: Names
    clicked_topics: Names
    recency: NDArray[np.float64]
    popularity: NDArray[np.float64]


def share_of_clicks(column: Names, clicked: Names) -> NDArray[np.float64]:
    """Return the share of clicks that have the candidate's name, [R]; zeros without clicks."""
    if not len(clicked):
        return np.zeros(len(column))
    names, counts = np.unique(clicked, return_counts=True)
    place = np.searchsorted(names, column).clip(max=len(names) - 1)
    return np.where(names[place] == column, counts[place] / len(clicked), 0.0)


FEATURES: Mapping[str, Callable[[FeatureContext], NDArray[np.float64]]] = {
    "section_affinity": lambda seen: share_of_clicks(seen.sections, seen.clicked_sections),
    "topic_affinity": lambda seen: share_of_clicks(seen.topics, seen.clicked_topics),
    "popularity": lambda seen: seen.popularity,
    "recency": lambda seen: seen.recency,
}
"""Every feature this program computes, by its name in a release.

Each is [R], between -1 and 1.
"""


def feature_columns(names: Sequence[str], context_features: FeatureContext) -> NDArray[np.float32]:
    """Return [R, F], one column for each of `names`, in order.

    Raises KeyError for a name not in FEATURES.
    """
    return np.stack([FEATURES[name](context_features) for name in names], axis=1).astype(np.float32)


FEATURES_INPUT = "features"


class Ranker:
    """Scores candidates with a `score` graph.

    Args:
        graph: the graph with its parameters.
        name: the model's name in its release.
        features: the columns of the graph's input `features`, in order; none for a graph without that input.

    Raises GraphMismatch if graph and features don't fit, or for a feature that this program doesn't compute.
    """

    def __init__(self, graph: GraphSession, *, name: str, features: tuple[str, ...] = ()) -> None:
        if unknown := [each for each in features if each not in FEATURES]:
            raise GraphMismatch(f"feature {unknown[0]} of {name}: this program does not compute it")
        if (FEATURES_INPUT in graph.inputs) != bool(features):
            declared = "declares" if FEATURES_INPUT in graph.inputs else "does not declare"
            named = ", ".join(features) or "none"
            raise GraphMismatch(
                f"input {FEATURES_INPUT} of {name}: the graph {declared} it; declared features: {named}"
            )
        self._graph = graph
        self.name = name
        self.features = features

    def with_views(self, views: object) -> Ranker:
        """Return this ranker: it uses clicks and their features, and no other views."""
        return self

    def with_own(self, parameters: Callable[[str], Mapping[str, NDArray[np.float32]]]) -> Ranker:
        """Return this ranker for one reader, with private parameters if the model has any."""
        if not self._graph.private:
            return self
        return Ranker(self._graph.with_private(parameters(self.name)), name=self.name, features=self.features)

    def score(
        self,
        clicks: NDArray[np.float32],
        candidates: NDArray[np.float32],
        context_features: FeatureContext | None = None,
    ) -> NDArray[np.float32]:
        """Return scores [R], higher is better, from clicks [H, D] and candidates [R, D].

        Clicks are ordered oldest first. A ranker with features needs the context of the same candidates and clicks;
        without clicks its features decide. Other rankers return zeros without clicks. Raises GraphMismatch if scores
        aren't finite.
        """
        if not len(candidates) or not (len(clicks) or self.features):
            return np.zeros(len(candidates), dtype=np.float32)
        padded, mask = left_padded(clicks)
        inputs = {"clicks": padded, "click_mask": mask, "candidates": candidates[None].astype(np.float32, copy=False)}
        if self.features:
            if context_features is None:
                raise ValueError(f"context: {self.name} uses {', '.join(self.features)} and needs it")
            inputs[FEATURES_INPUT] = feature_columns(self.features, context_features)[None]
        scores = np.asarray(self._graph(**inputs)["scores"][0], dtype=np.float32)
        if not np.isfinite(scores).all():
            raise GraphMismatch(f"scores of {self.name}: not finite; clicks or candidates contain NaN or huge values")
        return scores

    def contributions(
        self,
        clicks: NDArray[np.float32],
        candidates: NDArray[np.float32],
        context_features: FeatureContext,
    ) -> dict[str, NDArray[np.float64]]:
        """Return what each feature adds to `score`, [R] by name.

        Empty for a ranker without features. Each feature enters a score with one weight
        (models/user/candidate_attention.py). The weights are recovered from the graph by scoring one candidate with
        each feature alone. The remainder of a score is the fit to the clicks.
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
