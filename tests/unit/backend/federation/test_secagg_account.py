"""The account of noisy sums. Oracles: recorded figures of dp-accounting, and the analytic Gaussian mechanism."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from protocol.concentrated import epsilon_of
from tests.doubles.opened_sums import NoisyOpening, SumNoise, gaussian_figure, spent_on

NOISE = SumNoise(share_sigma=1_000, bound_steps=3_000.0, coordinates=10_000)


def analytic(multiplier: float, delta: float) -> float:
    """Balle and Wang 2018: the exact epsilon of a continuous Gaussian mechanism."""

    def excess(epsilon: float) -> float:
        half, scaled = 1 / (2 * multiplier), epsilon * multiplier
        return float(norm.cdf(half - scaled) - math.exp(epsilon) * norm.cdf(-half - scaled)) - delta

    return float(brentq(excess, 0.0, 200.0))


def test_epsilon_of_one_and_of_fifty_sums_matches_the_golden_values() -> None:
    openings = [NoisyOpening(NOISE, survivors=45)]
    # sqrt(45) / 3 = sqrt(5): rho = 0.1 a sum. dp-accounting 0.6.0.
    assert openings[0].rho == pytest.approx(0.1, rel=1e-12)
    assert spent_on(openings, 1e-6) == pytest.approx(2.14304, abs=1e-4)
    assert spent_on(openings * 50, 1e-6) == pytest.approx(20.5520, abs=1e-3)
    assert gaussian_figure(openings, 1e-6) == pytest.approx(1.99453, abs=1e-4)


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("survivors", [45, 400])
def test_gaussian_epsilon_matches_the_analytic_value_and_the_charged_bound_is_above_it(
    rounds: int, survivors: int
) -> None:
    opening = NoisyOpening(NOISE, survivors)
    exact = analytic(opening.noise_multiplier / math.sqrt(rounds), 1e-6)
    assert gaussian_figure([opening] * rounds, 1e-6) == pytest.approx(exact, rel=2e-3)
    assert exact < spent_on([opening] * rounds, 1e-6) < 1.25 * exact


def test_rounds_of_different_cohorts_compose_into_one_gaussian() -> None:
    openings = [NoisyOpening(NOISE, survivors) for survivors in (45, 90, 400)]
    # 9/45 + 9/90 + 9/400 is the squared inverse multiplier.
    exact = analytic((9 / 45 + 9 / 90 + 9 / 400) ** -0.5, 1e-6)
    assert gaussian_figure(openings, 1e-6) == pytest.approx(exact, rel=2e-3)
    assert sum(one.rho for one in openings) == pytest.approx((9 / 45 + 9 / 90 + 9 / 400) / 2, rel=1e-12)


@pytest.mark.parametrize("rounds", [1, 7, 100])
def test_device_and_server_compute_the_same_epsilon(rounds: int) -> None:
    opening = NoisyOpening(NOISE, 45)
    assert epsilon_of(rounds * opening.rho, 1e-6) == pytest.approx(spent_on([opening] * rounds, 1e-6), rel=2e-3)


def test_sum_costs_more_with_fewer_survivors_and_colluders_do_not_count_as_survivors() -> None:
    hoped = spent_on([NoisyOpening(NOISE, 50)], 1e-6)
    survived = spent_on([NoisyOpening(NOISE, 35)], 1e-6)
    assert survived > 1.15 * hoped
    assert spent_on([NoisyOpening(NOISE, 50, colluding=15)], 1e-6) == survived
    mixed = spent_on([NoisyOpening(NOISE, 50), NoisyOpening(NOISE, 35)], 1e-6)
    assert 2 * survived > mixed > survived
    with pytest.raises(ValueError, match="colluding"):
        NoisyOpening(NOISE, 5, colluding=5)


def test_empty_history_costs_nothing() -> None:
    assert spent_on([], 1e-6) == gaussian_figure([], 1e-6) == 0.0
