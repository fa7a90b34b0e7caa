"""Weights of prototypes against Bayes' rule worked out by hand, and their properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from backend.recall.bayes import (
    code_weights,
    direction_weights,
    log_probabilities,
    subset_weights,
    topics_weights,
    typical_histograms,
)
from backend.recall.priv_unit import cap_edge
from device_app.privacy.mechanisms.direction import PrivUnit

shares_of_5 = arrays(np.float64, 5, elements=st.floats(0.01, 1)).map(lambda shares: shares / shares.sum())


def test_four_nats_over_sixteen_even_prototypes_give_the_studys_weights() -> None:
    weights = code_weights(np.full(16, 1 / 16), 4.0, 3)
    assert weights[3] == pytest.approx(0.7845, abs=5e-5)  # e^4 / (e^4 + 15)
    assert np.delete(weights, 3) == pytest.approx(0.01437, abs=5e-6)


@given(shares_of_5, st.floats(0, 40), st.integers(0, 4))
def test_weights_of_a_code_are_the_posterior_of_randomised_response(
    shares: np.ndarray, epsilon: float, code: int
) -> None:
    protection = np.where(np.arange(5) == code, math.exp(epsilon), 1.0) / (math.exp(epsilon) + 4)  # P(code | k)
    posterior = shares * protection / (shares * protection).sum()
    weights = code_weights(shares, epsilon, code)
    np.testing.assert_allclose(weights, posterior, rtol=1e-9)
    assert weights.sum() == pytest.approx(1)


@given(shares_of_5, st.integers(0, 4))
def test_no_epsilon_gives_everybody_the_readers_shares(shares: np.ndarray, code: int) -> None:
    np.testing.assert_allclose(code_weights(shares, 0.0, code), shares)


@given(shares_of_5, st.integers(0, 4))
def test_an_infinite_epsilon_gives_the_code_alone(shares: np.ndarray, code: int) -> None:
    np.testing.assert_array_equal(code_weights(shares, math.inf, code), np.eye(5)[code])
    np.testing.assert_allclose(code_weights(shares, 800.0, code), np.eye(5)[code])  # e^800 is no double


def test_a_subset_of_one_is_a_code() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    np.testing.assert_array_equal(subset_weights(shares, 2.0, (1,)), code_weights(shares, 2.0, 1))


def test_every_topic_of_a_subset_is_as_much_likelier() -> None:
    weights = subset_weights(np.full(4, 0.25), math.log(3), (0, 2))
    np.testing.assert_allclose(weights, [3 / 8, 1 / 8, 3 / 8, 1 / 8])


def test_topics_without_noise_name_their_prototype_and_without_budget_name_none() -> None:
    shares = np.array([0.2, 0.3, 0.5])
    typical = typical_histograms(np.eye(3, dtype=np.float32), 0.5)
    np.testing.assert_allclose(typical.sum(axis=1), 1)
    np.testing.assert_allclose(topics_weights(shares, 1e4, typical[1], typical), [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(topics_weights(shares, 0.0, typical[1], typical), shares)


def test_topics_weights_are_the_posterior_of_laplace_noise() -> None:
    typical, noisy, epsilon = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.7, -0.4]), 3.0
    density = np.exp(-np.abs(noisy - typical).sum(axis=1) * epsilon / 2)
    np.testing.assert_allclose(
        topics_weights(np.array([0.4, 0.6]), epsilon, noisy, typical),
        np.array([0.4, 0.6]) * density / (np.array([0.4, 0.6]) * density).sum(),
    )


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 16.0])
def test_a_directions_weights_are_the_posterior_of_readers_spread_about_their_prototypes(epsilon: float) -> None:
    draw = np.random.default_rng(3)
    directions = np.linalg.qr(draw.normal(size=(8, 8)))[0][:3] + 0.2
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    vector, cosines, edge = directions[1], np.array([0.6, 0.8]), min(cap_edge(epsilon, 8), 0.85)
    sideways = draw.normal(size=(3, 200_000, 8))  # brute force: draw the readers
    sideways -= (sideways @ directions[:, :, None]) * directions[:, None, :]
    sideways /= np.linalg.norm(sideways, axis=2, keepdims=True)
    cosine = np.tile(cosines, 100_000)[:, None]
    readers = cosine * directions[:, None, :] + np.sqrt(1 - cosine**2) * sideways
    inside = (readers @ vector >= edge).mean(axis=1)
    expected = math.exp(-epsilon) + (1 - math.exp(-epsilon)) * inside
    weights = direction_weights(np.full(3, 1 / 3), directions, vector, edge=edge, epsilon=epsilon, cosines=cosines)
    np.testing.assert_allclose(weights, expected / expected.sum(), atol=0.01)


def test_a_direction_at_a_huge_epsilon_still_names_its_nearest_prototype() -> None:
    directions = np.eye(8)[:4]
    vector = np.array([0.1, 0.9, 0.2, 0, 0, 0, 0, 0]) / np.linalg.norm([0.1, 0.9, 0.2])
    weights = direction_weights(
        np.full(4, 0.25), directions, vector, edge=cap_edge(16.0, 8), epsilon=16.0, cosines=np.linspace(0.4, 0.95, 9)
    )
    assert np.isfinite(weights).all()
    assert weights.argmax() == 1
    assert weights[1] > 0.9


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 8.0])
def test_the_server_knows_where_the_devices_cap_ends(epsilon: float) -> None:
    assert cap_edge(epsilon, 8) == pytest.approx(PrivUnit(epsilon, 8).cap_edge, abs=1e-12)


def test_probabilities_add_up_to_one_over_the_pool() -> None:
    draw = np.random.default_rng(5)
    prototypes = draw.normal(size=(4, 6)).astype(np.float32)
    vectors = draw.normal(size=(2_000, 6)).astype(np.float32)
    logs = log_probabilities(prototypes, vectors, draw.normal(size=2_000).astype(np.float32), 1.5)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)


def test_a_report_that_no_reader_can_have_sent_is_an_error_of_ours() -> None:
    with pytest.raises(ValueError, match="weights"):
        code_weights(np.array([1.0, 0.0]), math.inf, 1)
