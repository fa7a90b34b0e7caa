"""The posterior of a direction under PrivUnit. Oracles: readers drawn by brute force, and scipy's distribution.

The mechanism itself is tested in tests/privacy/test_report_distributions.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from experiments.recall.modes import PrivUnit, cap_share, direction_weights


def test_cap_share_matches_the_distribution_of_a_coordinate_on_the_sphere() -> None:
    edges = np.array([-1.5, -1.0, -0.3, 0.0, 0.6, 1.0, 1.5])
    np.testing.assert_allclose(cap_share(edges, 8), stats.beta(3.5, 3.5, loc=-1, scale=2).sf(edges), atol=1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 16.0])
def test_weights_of_a_direction_match_the_posterior_from_simulated_readers(epsilon: float) -> None:
    draw = np.random.default_rng(3)
    directions = np.linalg.qr(draw.normal(size=(8, 8)))[0][:3] + 0.2
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    vector, cosines, edge = directions[1], np.array([0.6, 0.8]), min(PrivUnit(epsilon).cap_edge, 0.85)
    sideways = draw.normal(size=(3, 200_000, 8))  # brute force: draw the readers
    sideways -= (sideways @ directions[:, :, None]) * directions[:, None, :]
    sideways /= np.linalg.norm(sideways, axis=2, keepdims=True)
    cosine = np.tile(cosines, 100_000)[:, None]
    readers = cosine * directions[:, None, :] + np.sqrt(1 - cosine**2) * sideways
    inside = (readers @ vector >= edge).mean(axis=1)
    expected = math.exp(-epsilon) + (1 - math.exp(-epsilon)) * inside
    weights = direction_weights(np.full(3, 1 / 3), directions, vector, edge=edge, epsilon=epsilon, cosines=cosines)
    np.testing.assert_allclose(weights, expected / expected.sum(), atol=0.01)


def test_direction_at_a_huge_epsilon_gives_all_weight_to_its_nearest_prototype() -> None:
    directions = np.eye(8)[:4]
    vector = np.array([0.1, 0.9, 0.2, 0, 0, 0, 0, 0]) / np.linalg.norm([0.1, 0.9, 0.2])
    weights = direction_weights(
        np.full(4, 0.25),
        directions,
        vector,
        edge=PrivUnit(16.0).cap_edge,
        epsilon=16.0,
        cosines=np.linspace(0.4, 0.95, 9),
    )
    assert np.isfinite(weights).all()
    assert weights.argmax() == 1
    assert weights[1] > 0.9
