"""PinnerSage: Ward clusters, medoids and importance. Oracle: a plain greedy implementation of the definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.recall.baselines import medoids

GOLDEN = np.array([[0.0], [0.5], [2.0]])


def greedy(points: np.ndarray, limit: float) -> set[frozenset[int]]:
    """Merge the pair of clusters of least cost while it is at most `limit`."""
    clusters = [frozenset([row]) for row in range(len(points))]
    while len(clusters) > 1:
        costs = [
            (len(a) * len(b) / (len(a) + len(b)) * float(np.square(_mean(points, a) - _mean(points, b)).sum()), a, b)
            for n, a in enumerate(clusters)
            for b in clusters[n + 1 :]
        ]
        cost, a, b = min(costs, key=lambda each: each[0])
        if cost > limit:
            break
        clusters = [one for one in clusters if one not in (a, b)] + [a | b]
    return set(clusters)


def _mean(points: np.ndarray, rows: frozenset[int]) -> np.ndarray:
    return points[sorted(rows)].mean(axis=0)


@pytest.mark.parametrize(
    ("height", "sizes"),
    [(0.49, [1, 1, 1]), (0.51, [2, 1]), (1.0, [2, 1]), (1.75, [2, 1]), (2.0207, [2, 1]), (2.0208, [3])],
)
def test_ward_clustering_merges_at_the_golden_heights_of_section_2_3(height: float, sizes: list[int]) -> None:
    found = medoids(GOLDEN, merge_cost_limit=height**2 / 2)
    assert [one.size for one in found] == sizes


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.floats(0.05, 5.0), st.integers(0, 2**32 - 1), st.booleans())
def test_interests_match_a_plain_implementation(clicks: int, limit: float, seed: int, timed: bool) -> None:
    draw = np.random.default_rng(seed)
    points, days = draw.normal(size=(clicks, 3)), draw.uniform(0, 300, clicks)
    found = medoids(points, days if timed else None, merge_cost_limit=limit, limit=clicks)
    clusters = greedy(points, limit)
    assert {(one.click, one.size) for one in found} == {
        (min(sorted(c), key=lambda j: sum(float(np.square(points[j] - points[k]).sum()) for k in c)), len(c))
        for c in clusters
    }
    for one in found:
        (own,) = (c for c in clusters if one.click in c)
        assert one.importance == pytest.approx(sum(math.exp(-0.01 * days[j]) for j in own) if timed else len(own))
    order = [one.importance for one in found]
    assert order == sorted(order, reverse=True)
    assert medoids(points, days if timed else None, merge_cost_limit=limit) == found[:3]


def test_medoid_is_always_a_clicked_article() -> None:
    ring = np.array([[math.cos(a), math.sin(a)] for a in np.linspace(0, 2 * math.pi, 7)[:-1]])
    (one,) = medoids(ring, merge_cost_limit=100.0)
    assert 0 <= one.click < 6
    assert np.linalg.norm(ring[one.click]) == pytest.approx(1)


def test_fresh_clicks_outweigh_more_but_older_ones() -> None:
    points = np.array([[0.0, 1], [0, 1], [0, 1], [1, 0], [1, 0]])
    assert [one.click for one in medoids(points)] == [0, 3]
    assert [one.click for one in medoids(points, [200, 200, 200, 1, 0])] == [3, 0]
    assert medoids(points, [200, 200, 200, 1, 0])[1].importance == pytest.approx(3 * math.exp(-2))


def test_zero_clicks_give_no_interest_and_one_click_gives_one() -> None:
    assert medoids(np.zeros((0, 4))) == []
    assert [(one.click, one.size) for one in medoids(np.ones((1, 4)))] == [(0, 1)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"clicks": np.zeros(3)}, r"clicks must be finite and of shape \[n, D\], got shape \(3,\)"),
        ({"clicks": np.full((2, 2), np.nan)}, "clicks must be finite"),
        ({"clicks": GOLDEN, "days_ago": [1.0]}, r"days_ago must be 3 .* got shape \(1,\)"),
        ({"clicks": GOLDEN, "days_ago": [1.0, -1.0, 0.0]}, "days_ago"),
        ({"clicks": GOLDEN, "merge_cost_limit": 0.0}, "merge_cost_limit"),
        ({"clicks": GOLDEN, "limit": 0}, "limit"),
    ],
)
def test_invalid_arguments_are_named_in_the_error(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        medoids(**arguments)
