"""Weights of prototypes compared with Bayes' rule worked out by hand, and their properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from backend.recall.posterior import code_weights, subset_weights, topics_weights, typical_histograms

shares_of_5 = arrays(np.float64, 5, elements=st.floats(0.01, 1)).map(lambda shares: shares / shares.sum())


def test_code_weights_for_epsilon_4_and_sixteen_prototypes_match_the_study() -> None:
    weights = code_weights(np.full(16, 1 / 16), 4.0, 3)
    assert weights[3] == pytest.approx(0.7845, abs=5e-5)  # e^4 / (e^4 + 15)
    assert np.delete(weights, 3) == pytest.approx(0.01437, abs=5e-6)


@given(shares_of_5, st.floats(0, 40), st.integers(0, 4))
def test_code_weights_are_the_posterior_of_randomised_response(shares: np.ndarray, epsilon: float, code: int) -> None:
    protection = np.where(np.arange(5) == code, math.exp(epsilon), 1.0) / (math.exp(epsilon) + 4)  # P(code | k)
    posterior = shares * protection / (shares * protection).sum()
    weights = code_weights(shares, epsilon, code)
    np.testing.assert_allclose(weights, posterior, rtol=1e-9)
    assert weights.sum() == pytest.approx(1)


@given(shares_of_5, st.integers(0, 4))
def test_code_at_zero_epsilon_gives_the_prior_shares_of_readers(shares: np.ndarray, code: int) -> None:
    np.testing.assert_allclose(code_weights(shares, 0.0, code), shares)


@given(shares_of_5, st.integers(0, 4))
def test_code_at_infinite_epsilon_gives_all_weight_to_itself(shares: np.ndarray, code: int) -> None:
    np.testing.assert_array_equal(code_weights(shares, math.inf, code), np.eye(5)[code])
    np.testing.assert_allclose(code_weights(shares, 800.0, code), np.eye(5)[code])  # e^800 is no double


def test_subset_of_size_one_is_weighted_like_a_code() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    np.testing.assert_array_equal(subset_weights(shares, 2.0, (1,)), code_weights(shares, 2.0, 1))


def test_all_topics_in_a_subset_get_the_same_higher_weight() -> None:
    weights = subset_weights(np.full(4, 0.25), math.log(3), (0, 2))
    np.testing.assert_allclose(weights, [3 / 8, 1 / 8, 3 / 8, 1 / 8])


def test_noiseless_topics_identify_their_prototype_and_topics_at_zero_epsilon_none() -> None:
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


def test_report_with_probability_zero_raises_a_value_error() -> None:
    with pytest.raises(ValueError, match="weights"):
        code_weights(np.array([1.0, 0.0]), math.inf, 1)
