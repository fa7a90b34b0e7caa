"""What a ranker may know of a candidate besides its vector, computed on the device from the reader's own data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Names = NDArray[np.int64]
"""Names as numbers: equal names have equal numbers."""


@dataclass(frozen=True)
class FeatureContext:
    """R candidates beside the reader's H clicks. Sensitive: it never leaves the device.

    sections and topics are [R], clicked_sections and clicked_topics [H]; recency [R] is 1 for news of this moment and
    halves with every half-life; popularity [R], from -1 to 1, is half the log of how much more often a piece of news is
    clicked when displayed than news usually is, by private counts (wire.popularity): 0 where nothing is known.
    """

    sections: Names
    topics: Names
    clicked_sections: Names
    clicked_topics: Names
    recency: NDArray[np.float64]
    popularity: NDArray[np.float64]


def share_of_clicks(column: Names, clicked: Names) -> NDArray[np.float64]:
    """[R]: the share of the clicks that have the candidate's name; zeros without clicks."""
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
"""Every feature this program computes, by the name that a release's model gives it; each [R], within -1 to 1."""


def feature_columns(names: Sequence[str], context_features: FeatureContext) -> NDArray[np.float32]:
    """[R, F], one column for each of `names`, in order. Raises KeyError for a name that is none of FEATURES."""
    return np.stack([FEATURES[name](context_features) for name in names], axis=1).astype(np.float32)
