"""The composition of many charges. Oracle: dp-accounting's privacy loss distributions."""

from __future__ import annotations

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from device_app.privacy.accounting.composition import DELTA, composed, epsilon_of_responses


def code(size: float, epsilon: float, count: int) -> tuple[str, str, dict[str, float], float, float, int]:
    return ("reports", "code", {"size": size, "epsilon": epsilon}, epsilon, 0.0, count)


@pytest.mark.parametrize(
    ("responses", "delta"),
    [([(16, 4.0, 3)], 1e-6), ([(16, 0.5, 40)], 1e-6), ([(4, 1.0, 12)], 1e-4), ([(64, 2.0, 5), (16, 0.5, 6)], 1e-5)],
)
def test_randomised_responses_compose_as_in_dp_accounting(
    responses: list[tuple[int, float, int]], delta: float
) -> None:
    total = pld.identity(value_discretization_interval=1e-3)
    for size, epsilon, count in responses:
        noise = size / (math.exp(epsilon) + size - 1)  # theirs: keep with 1 - noise, else any of all K
        one = pld.from_randomized_response(noise, size, value_discretization_interval=1e-3)
        total = total.compose(one.self_compose(count))
    theirs = total.get_epsilon_for_delta(delta)
    ours = epsilon_of_responses(responses, delta)
    steps = sum(count for _, _, count in responses)
    assert ours <= theirs + 1e-9, "theirs rounds losses up to a grid"
    assert ours == pytest.approx(theirs, abs=2e-3 * steps)


def test_composition_saves_nothing_for_ten_reports_at_the_shipped_epsilon() -> None:
    # P(10 true codes in a row) = 0.7845^10 = 0.09: the whole loss of 40 is likely, so no delta of 1e-6 hides it.
    ten = composed([code(16, 4.0, 10)])
    assert ten.by_sum == 40
    assert ten.by_loss == pytest.approx(40, abs=0.01)
    many = composed([code(16, 0.5, 60)])
    assert many.by_loss < 0.75 * many.by_sum


def test_epsilons_of_responses_beyond_the_composition_limit_are_added() -> None:
    prices = [1 + math.sqrt(number) / 10 for number in range(2, 9)]  # 11 values each: 161,051 for five of them
    responses = [(16, price, 5) for price in prices]
    first = epsilon_of_responses(responses[:5], DELTA)
    assert 0 < first < 5 * sum(prices[:5])
    assert epsilon_of_responses(responses, DELTA) == pytest.approx(first + 5 * sum(prices[5:]))
    many = composed([code(16, 1 + number / 997, 1) for number in range(2_000)])
    assert 0 < many.by_loss <= many.by_sum


def test_epsilons_of_unknown_mechanisms_are_added_and_an_empty_list_costs_nothing() -> None:
    assert composed([]) == composed(iter([]))
    assert composed([]).by_loss == 0
    both = composed([code(16, 4.0, 1), ("training", "local_laplace", {"clip": 0.1}, 20.0, 1e-7, 2)])
    assert both.by_sum == 44
    assert both.delta_by_sum == pytest.approx(2e-7)
    assert 43 < both.by_loss <= 44
    assert both.charges == 3
    assert DELTA == 1e-6
