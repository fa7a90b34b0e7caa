"""Average linkage compared with examples by hand and with SciPy's own clustering."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from device_app.reading.click_clusters import average_linkage, membership

GOLDEN = np.array([[0.0], [0.5], [2.0]], dtype=np.float32)


@pytest.mark.parametrize(
    ("distance", "labels"), [(0.4, [0, 1, 2]), (1.0, [0, 0, 1]), (1.74, [0, 0, 1]), (1.75, [0, 0, 0])]
)
def test_clusters_of_the_golden_points_match_their_known_merge_heights(distance: float, labels: list[int]) -> None:
    assert average_linkage(GOLDEN, distance, 5).tolist() == labels


def test_zero_clicks_give_no_cluster_and_one_click_gives_one() -> None:
    assert average_linkage(np.zeros((0, 4), dtype=np.float32), 1.0, 5).tolist() == []
    assert average_linkage(np.ones((1, 4), dtype=np.float32), 1.0, 5).tolist() == [0]


def test_too_many_clusters_are_merged_on_the_same_dendrogram() -> None:
    points = np.array([[0.0], [1.0], [10.0], [11.5], [30.0], [32.0], [70.0]], dtype=np.float32)
    assert len(set(average_linkage(points, 0.5, 7).tolist())) == 7
    assert average_linkage(points, 0.5, 4).tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert average_linkage(points, 0.5, 3).tolist() == [0, 0, 0, 0, 1, 1, 2]


def test_larger_clusters_come_first_and_ties_go_by_oldest_click() -> None:
    points = np.array([[50.0], [0.0], [90.0], [0.1], [90.1], [0.2]], dtype=np.float32)
    assert average_linkage(points, 1.0, 5).tolist() == [2, 0, 1, 0, 1, 0]
    pairs = np.array([[9.0], [0.0], [9.1], [0.1]], dtype=np.float32)
    assert average_linkage(pairs, 1.0, 5).tolist() == [0, 1, 0, 1]


def test_equal_clicks_form_one_cluster() -> None:
    assert average_linkage(np.ones((50, 3), dtype=np.float32), 1e-9, 5).tolist() == [0] * 50


def _greedy(points: np.ndarray, distance: float) -> set[frozenset[int]]:
    """The textbook algorithm: merge the two clusters of least average distance while it is at most `distance`."""
    gaps = squareform(pdist(points.astype(np.float64)))
    clusters = [frozenset([row]) for row in range(len(points))]
    while len(clusters) > 1:
        pairs = [
            (gaps[np.ix_(sorted(a), sorted(b))].mean(), a, b) for n, a in enumerate(clusters) for b in clusters[n + 1 :]
        ]
        gap, a, b = min(pairs, key=lambda pair: pair[0])
        if gap > distance:
            break
        clusters = [one for one in clusters if one not in (a, b)] + [a | b]
    return set(clusters)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 14), st.floats(0.3, 3.0), st.integers(0, 2**32 - 1))
def test_clusters_match_the_textbook_algorithm(clicks: int, distance: float, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(clicks, 3)).astype(np.float32)
    labels = average_linkage(points, distance, clicks)
    found = {frozenset(np.flatnonzero(labels == one).tolist()) for one in set(labels.tolist())}
    assert found == _greedy(points, distance)


def test_membership_has_one_channel_per_click_and_empty_rows_beyond() -> None:
    members = membership(np.array([0, 1, 0]), 5)
    assert members.shape == (5, 3)
    assert members.tolist()[:2] == [[1, 0, 1], [0, 1, 0]]
    assert members[2:].sum() == 0


@pytest.mark.parametrize(
    ("contexts", "distance", "limit", "named"),
    [
        (np.zeros(3, dtype=np.float32), 1.0, 5, "contexts"),
        (GOLDEN, 0.0, 5, "distance"),
        (GOLDEN, float("nan"), 5, "distance"),
        (GOLDEN, 1.0, 0, "channels_limit"),
    ],
)
def test_invalid_arguments_are_named_in_the_error(
    contexts: np.ndarray, distance: float, limit: int, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        average_linkage(contexts, distance, limit)
