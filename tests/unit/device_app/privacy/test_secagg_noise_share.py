"""Discrete Gaussian shares. Oracles: the stated distribution by summation, exact fractions, and dp-accounting."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from device_app.privacy import noise_share
from device_app.privacy.noise_share import (
    SIGMA_LIMIT,
    BoundedCode,
    add_noise_share,
    clip_and_encode,
    discrete_gaussian,
)
from device_app.privacy.noise_sources import SeededNoise, SystemNoise
from protocol.concentrated import epsilon_of, rho_of_sum
from protocol.ring import FixedPoint, RingError, as_integers, from_integers

RARE = 1e-6
"""A true sampler fails a chi-square test below with this probability; seeds are fixed, so outcomes are too."""


def mechanism(sigma: float, reach: int) -> np.ndarray:
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    return weights / weights.sum()


def follows_gaussian(draws: np.ndarray, sigma: float, cells: int) -> bool:
    """Return whether draws follow the stated distribution, by chi-square in cells of equal width and two tails."""
    reach = math.ceil(12 * sigma)
    probability = mechanism(sigma, reach)
    edge = math.ceil(4 * sigma)
    width = max(1, 2 * edge // cells)
    marks = np.arange(-edge, edge + 1, width)
    x = np.arange(-reach, reach + 1)
    expected = np.bincount(np.searchsorted(marks, x, side="right"), weights=probability) * draws.size
    counts = np.bincount(np.searchsorted(marks, draws, side="right"), minlength=expected.size)
    big = expected > 5
    statistic = float(((counts[big] - expected[big]) ** 2 / expected[big]).sum())
    return statistic < float(chi2.isf(RARE, int(big.sum()) - 1))


@pytest.mark.parametrize("sigma", [1, 2, 5, 40, 1_000])
def test_draws_match_the_discrete_gaussian(sigma: int) -> None:
    draws = discrete_gaussian(sigma, 150_000, SeededNoise(f"law {sigma}"))
    assert draws.size == 150_000
    assert follows_gaussian(draws, sigma, 60)
    assert not follows_gaussian(draws, sigma * 1.03, 60), "the test sees a sigma that is off by three percent"


def test_discrete_gaussian_with_the_largest_sigma_has_the_stated_moments() -> None:
    # Standard errors: sigma / sqrt(n) of the mean, sigma^2 sqrt(2 / n) of the variance; 5 of them.
    draws = discrete_gaussian(SIGMA_LIMIT, 100_000, SeededNoise("large")) / SIGMA_LIMIT
    assert abs(draws.mean()) < 5 / math.sqrt(100_000)
    assert abs(draws.var() - 1) < 5 * math.sqrt(2 / 100_000)
    assert np.abs(draws).max() > 3.5


def test_coin_flips_that_doubles_cannot_decide_are_decided_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_share, "FLOAT_SLACK", 2.0)
    draws = discrete_gaussian(3, 3_000, SeededNoise("exact"))
    monkeypatch.undo()
    assert (draws == discrete_gaussian(3, 3_000, SeededNoise("exact"))).all()
    assert follows_gaussian(draws, 3, 30)


@pytest.mark.parametrize("exponent", [Fraction(1), Fraction(1, 3), Fraction(45), Fraction(0)])
def test_coin_flip_at_the_boundary_uses_more_random_digits(exponent: Fraction) -> None:
    edge = int(Fraction(math.exp(-exponent)) * 2**64)
    source = SeededNoise("edge")
    assert noise_share._decide(max(0, edge - 2**14), exponent, source) is (exponent < 40)
    assert noise_share._decide(min(2**64 - 1, edge + 2**14), exponent, source) is (exponent == 0)
    heads = sum(noise_share._decide(0, Fraction(45), SeededNoise(n)) for n in range(300))
    # exp(-45) 2^64 = 0.528: the first word can't decide, further ones do.
    assert heads / 300 == pytest.approx(math.exp(-45) * 2**64, abs=5 * 0.029)


def test_system_noise_differs_between_calls() -> None:
    assert (discrete_gaussian(100, 50, SystemNoise()) != discrete_gaussian(100, 50, SystemNoise())).any()
    assert discrete_gaussian(100, 0, SystemNoise()).size == 0


@pytest.mark.parametrize("sigma", [0, -1, SIGMA_LIMIT + 1, 1.5])
def test_sigma_out_of_range_is_refused(sigma: float) -> None:
    with pytest.raises(ValueError, match="sigma: an integer from 1"):
        discrete_gaussian(sigma, 1, SystemNoise())  # type: ignore[arg-type]


vectors = st.lists(st.floats(-50, 50), min_size=1, max_size=40).map(np.array)


@settings(max_examples=200, deadline=None)
@given(vectors, st.floats(0.1, 20), st.integers(0, 12))
def test_encoded_vector_never_leaves_the_ball(values: np.ndarray, norm: float, fraction_bits: int) -> None:
    fixed = FixedPoint(32, fraction_bits, 100.0, 50)
    code = clip_and_encode(values, norm, fixed)
    exact = sum(int(value) ** 2 for value in as_integers(code.codes))
    assert exact <= Fraction(norm * 2**fraction_bits) ** 2
    assert code.bound_steps == norm * 2**fraction_bits


def test_vector_inside_the_ball_is_only_rounded() -> None:
    fixed = FixedPoint(32, 10, 10.0, 50)
    values = np.array([0.3, -0.4, 0.0])
    assert (clip_and_encode(values, 1.0, fixed).codes == fixed.encode(values)).all()
    assert fixed.decode(clip_and_encode(10 * values, 1.0, fixed).codes) == pytest.approx([0.6, -0.8, 0], abs=2**-9)


def test_rounding_beyond_the_ball_truncates_toward_zero() -> None:
    fixed = FixedPoint(32, 0, 100.0, 2)
    values = np.full(100, 0.9)
    assert np.linalg.norm(as_integers(fixed.encode(values))) > 9.0
    assert as_integers(clip_and_encode(values, 9.0, fixed).codes).tolist() == [0] * 100


def test_encoded_vector_beyond_its_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="norm above 5"):
        BoundedCode(from_integers(np.array([3, -5]), 32), 5.0)
    assert BoundedCode(from_integers(np.array([3, -4]), 32), 5.1).bound_steps == 5.1
    with pytest.raises(ValueError, match="bound_steps"):
        BoundedCode(from_integers(np.array([0]), 32), float("nan"))
    with pytest.raises(RingError, match="NaN"):
        clip_and_encode(np.array([1.0, np.nan]), 1.0, FixedPoint(32, 4, 2.0, 5))


def test_survivors_shares_add_up_to_the_noise_of_the_sum() -> None:
    fixed = FixedPoint(32, 4, 1.0, 20, headroom=12 * math.sqrt(20) * 30)
    values = np.linspace(-0.01, 0.01, 20_000)
    code = clip_and_encode(values, 1.0, fixed)
    total = np.zeros(values.size, dtype="<u4")
    for device in range(20):
        total += add_noise_share(code, 30, SeededNoise(device), 32)
    noise = as_integers(total) - 20 * as_integers(code.codes)
    assert follows_gaussian(noise, math.sqrt(20) * 30, 60)


def test_rho_of_a_sum_with_large_noise_shares_is_that_of_a_gaussian() -> None:
    assert rho_of_sum(100.0, 50, 16, 1_000_000) == pytest.approx((100 / (4 * 50)) ** 2 / 2, rel=1e-12)


def test_small_noise_shares_are_charged_for_deviating_from_a_discrete_gaussian() -> None:
    # n = 2, sigma = 1, d = 9, D = 1: tau = 10 exp(-pi^2), by hand.
    tau = 10 * math.exp(-(math.pi**2))
    by_hand = min(math.sqrt(1 / 2 + tau * 9 / 2), 1 / math.sqrt(2) + tau * 3) ** 2 / 2
    assert rho_of_sum(1.0, 1, 2, 9) == pytest.approx(by_hand, rel=1e-12)
    assert by_hand > 0.25


def test_epsilon_of_rho_is_below_the_simple_bound_and_grows() -> None:
    previous = 0.0
    for rho in (1e-6, 1e-4, 0.01, 0.1, 1.0, 10.0, 1_000.0):
        epsilon = epsilon_of(rho, 1e-6)
        assert previous < epsilon < rho + 2 * math.sqrt(rho * math.log(1e6))
        previous = epsilon
    assert epsilon_of(0.0, 1e-6) == 0.0
    with pytest.raises(ValueError, match="delta"):
        epsilon_of(1.0, 0.0)


@pytest.mark.parametrize("change", [{"bound_steps": 0.0}, {"share_sigma": 0}, {"contributors": 0}, {"coordinates": 0}])
def test_rho_of_invalid_numbers_is_refused(change: dict[str, float]) -> None:
    usual = {"bound_steps": 1.0, "share_sigma": 1, "contributors": 2, "coordinates": 1}
    with pytest.raises(ValueError, match=next(iter(change))):
        rho_of_sum(**(usual | change))  # type: ignore[arg-type]
