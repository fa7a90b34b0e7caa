"""The noise has the distribution it claims, and the mechanism spends exactly what it declares.

Each test fails a correct program with probability below one in a million.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats

from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.noise_sources import NoiseSource, SeededNoise, SystemNoise, laplace

FALSE_ALARM = 1e-6
SCALE = 1.2
PAPER = BasisLaplace(clip=0.2, scale=1.2, basis_size=30, channels_limit=5)
SOURCES = pytest.mark.parametrize("source", [SystemNoise(), SeededNoise("protection")], ids=["system", "seeded"])


@SOURCES
def test_laplace_draws_pass_a_kolmogorov_smirnov_test(source: NoiseSource) -> None:
    draws = laplace(source, SCALE, 200_000)
    assert stats.kstest(draws, stats.laplace(scale=SCALE).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(draws, stats.laplace(scale=SCALE * 1.1).cdf).pvalue < FALSE_ALARM, (
        "the test must be able to fail"
    )


@SOURCES
def test_laplace_standard_deviation_is_root_two_times_the_scale(source: NoiseSource) -> None:
    # The standard error of the deviation of a million draws is sqrt(5 / 4n) = 0.11 %: one percent is nine of them.
    draws = laplace(source, SCALE, 1_000_000)
    assert draws.std() == pytest.approx(SCALE * np.sqrt(2), rel=0.01)
    assert abs(draws.mean()) < 5 * SCALE * np.sqrt(2) / 1_000
    # Signs are independent of magnitudes: 5.3 standard errors of a proportion.
    large = draws[np.abs(draws) > np.median(np.abs(draws))]
    assert abs((large > 0).mean() - 0.5) < 5.3 * 0.5 / np.sqrt(len(large))


def test_consecutive_laplace_draws_are_independent() -> None:
    draws = laplace(SystemNoise(), 1.0, 200_000)
    uniform = stats.laplace.cdf(draws)
    correlation = np.corrcoef(uniform[:-1], uniform[1:])[0, 1]
    assert abs(correlation) < 5.0 / np.sqrt(len(uniform))


def test_extreme_random_bits_give_finite_draws() -> None:
    class AllOnes:
        def uniform_bits(self, n: int) -> bytes:
            return b"\xff" * n

    class AllZeros:
        def uniform_bits(self, n: int) -> bytes:
            return bytes(n)

    assert laplace(AllOnes(), 1.0, 3).tolist() == [0.0, 0.0, 0.0]
    assert np.abs(laplace(AllZeros(), 1.0, 3)).tolist() == pytest.approx([53 * np.log(2)] * 3)


def test_seeded_noise_repeats_and_system_noise_does_not() -> None:
    np.testing.assert_array_equal(laplace(SeededNoise(1), 1.0, 9), laplace(SeededNoise(1), 1.0, 9))
    assert (laplace(SeededNoise(1), 1.0, 9) != laplace(SeededNoise(2), 1.0, 9)).all()
    assert (laplace(SystemNoise(), 1.0, 9) != laplace(SystemNoise(), 1.0, 9)).all()
    stream = SeededNoise(1)
    assert (laplace(stream, 1.0, 9) != laplace(stream, 1.0, 9)).all()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_noise_scale_of_zero_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be positive"):
        laplace(SystemNoise(), scale, 3)
    with pytest.raises(ValueError, match="scale must be positive"):
        BasisLaplace(0.2, scale, 30, 5)


def test_epsilons_of_the_papers_noise_are_a_third_ten_and_fifty() -> None:
    # 2 delta / lambda a score.
    assert PAPER.epsilon_per_score == pytest.approx(1 / 3)
    assert PAPER.epsilon_per_channel == pytest.approx(10)
    assert PAPER.epsilon_per_report == pytest.approx(50)
    assert BasisLaplace(1.0, 0.1, 30, 5).epsilon_per_channel == pytest.approx(600)


def epsilon_seen(low: np.ndarray, high: np.ndarray, threshold: float) -> float:
    """Return the Clopper-Pearson lower bound on ln P[high > t] / P[low > t], which bounds epsilon from below."""
    n = len(high)
    above_high, above_low = int((high > threshold).sum()), int((low > threshold).sum())
    surely_high = stats.beta.ppf(FALSE_ALARM / 2, above_high, n - above_high + 1)
    surely_low = stats.beta.isf(FALSE_ALARM / 2, above_low + 1, n - above_low)
    return float(np.log(surely_high / surely_low))


def releases(mechanism: BasisLaplace, score: float, n: int) -> np.ndarray:
    """Return n releases of one score, through the mechanism itself."""
    rows = np.full((n // mechanism.basis_size, mechanism.basis_size), score)
    chunks = [rows[start : start + mechanism.channels_limit] for start in range(0, len(rows), mechanism.channels_limit)]
    noise = SystemNoise()
    return np.concatenate([mechanism.release(chunk, noise).ravel() for chunk in chunks])


def test_observed_epsilon_of_one_score_is_within_its_bound() -> None:
    # Scores far beyond the clip on either side, told apart by the best threshold for Laplace noise.
    wide = BasisLaplace(clip=0.2, scale=1.2, basis_size=500, channels_limit=100)
    low, high = releases(wide, -9.0, 400_000), releases(wide, 9.0, 400_000)
    bounds = [epsilon_seen(low, high, threshold) for threshold in (0.0, 0.2, 0.5, 1.0, 2.0)]
    assert max(bounds) <= wide.epsilon_per_score
    assert max(bounds) > 0.9 * wide.epsilon_per_score


def test_check_detects_a_mechanism_with_half_the_noise() -> None:
    claimed = BasisLaplace(clip=0.2, scale=1.2, basis_size=500, channels_limit=100).epsilon_per_score
    broken = BasisLaplace(clip=0.2, scale=0.6, basis_size=500, channels_limit=100)
    assert epsilon_seen(releases(broken, -9.0, 400_000), releases(broken, 9.0, 400_000), 0.2) > claimed


def test_quarter_million_draws_are_fast() -> None:
    # Measured 9 ms of processor time, most of it os.urandom; the bound leaves room for a busy machine.
    laplace(SystemNoise(), 1.0, 1_000)
    best_ms = float("inf")
    for _ in range(7):
        started = time.process_time()
        laplace(SystemNoise(), 0.01, 250_000)
        best_ms = min(best_ms, (time.process_time() - started) * 1_000)
    assert best_ms < 30
