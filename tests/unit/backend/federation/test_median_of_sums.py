"""Cohorts dealt into groups with a sum each: how many, at what price, and what a gate of groups takes for a fall."""

from __future__ import annotations

import numpy as np
import pytest

from backend.federation.secagg.parts import CohortSplit
from backend.federation.strategies.joined_sums import MedianOfSums
from backend.federation.strategies.release_gate import judge_sums
from backend.federation.systems import SYSTEMS
from backend.federation.systems.private_counts import MEMBERS
from device_app.privacy.prices import sum_prices
from device_app.settings import PrivacySettings
from device_app.wire.layout import WeightedSum
from device_app.wire.protections import SecureSum
from device_app.wire.sum_vectors import ASIDE, GAIN, LEVEL, SQUARE

SPLIT = CohortSplit(members=10, parts=3, left=2)


@pytest.mark.parametrize(
    ("cohort", "minimum", "parts"),
    [(60, 10, 5), (36, 10, 3), (35, 10, 0), (60, 2, 5), (60, 16, 3), (60, 17, 0), (1_000, 10, 83), (12, 3, 0)],
)
def test_a_cohort_makes_groups_that_lose_two_of_twelve_or_is_one_sum(cohort: int, minimum: int, parts: int) -> None:
    protection = SYSTEMS["small_ranker_secure"].protection
    assert isinstance(protection, SecureSum)
    terms = protection.terms("round-1", cohort=cohort, cohort_minimum=minimum, coordinates=262)
    assert SPLIT.parts_of(cohort, terms) == parts


@pytest.mark.parametrize(
    ("gains", "falls"),
    [
        ((-0.6, -0.6, -0.6, -0.6, -0.6), True),
        ((-0.6, -0.6, -0.6, -0.6, 1.0), True),
        ((-1.0, -1.0, -1.0, 0.1, 0.0), False),
        ((-1.0, 0.1, 0.1, 0.1, 0.1), False),
        ((-0.6, -0.6, 1.0), True),
        ((-1.0, 0.1, 0.1), False),
    ],
)
def test_a_release_falls_if_four_groups_of_five_saw_it(gains: tuple[float, ...], falls: bool) -> None:
    """Red before: three liars in three groups of five voted every release down."""
    protection = SYSTEMS["release_gate"].protection
    assert isinstance(protection, SecureSum)
    sums = [
        WeightedSum(
            {GAIN: np.array([12 * gain]), SQUARE: np.array([12 * ASIDE * 0.1]), LEVEL: np.array([12 * ASIDE * 0.4])}, 12
        )
        for gain in gains
    ]
    assert judge_sums(MedianOfSums().join(sums, None), protection, tolerance=0.003, confidence=0.95).falls is falls


def test_a_value_that_makes_no_median_is_refused() -> None:
    with pytest.raises(ValueError, match="groups"):
        MedianOfSums(groups=2)


@pytest.mark.parametrize(
    ("cohort", "minimum", "parts"),
    [(60, 18, 0), (65, 18, 0), (66, 18, 3), (71, 20, 0), (200, 10, 9), (1_000, 18, 45), (1_000, 50, 16)],
)
def test_a_count_is_one_sum_as_long_as_that_holds_a_liar_and_groups_of_22_from_there(
    cohort: int, minimum: int, parts: int
) -> None:
    spec = SYSTEMS["private_counts"]
    assert isinstance(spec.protection, SecureSum)
    assert spec.join is not None
    terms = spec.protection.terms("round-1", cohort=cohort, cohort_minimum=minimum, coordinates=64)
    split = CohortSplit(members=spec.join.members, parts=spec.join.groups, left=spec.join.left)
    assert split.parts_of(cohort, terms) == parts


def test_shares_too_thin_for_a_group_stay_in_one_sum() -> None:
    """A group of 22 under `private_counts_large` would cost more than the 8 that devices allow."""
    large = SYSTEMS["private_counts_large"]
    assert isinstance(large.protection, SecureSum)
    assert large.protection.epsilon(22, 2 * 8_192) > PrivacySettings().epsilon_per_sum
    assert large.join is None
    assert SYSTEMS["private_counts_exact"].join is None, "of exact counts of rare clicks a robust centre is zero"


def test_a_devices_prices_in_a_group_are_those_of_its_groups_fewest_and_alone_of_its_own_share() -> None:
    protection = SYSTEMS["private_counts"].protection
    assert isinstance(protection, SecureSum)
    grouped, whole = (sum_prices(protection, fewest, 2 * 8_192, 1e-6) for fewest in (MEMBERS, 333))
    assert grouped.alone == whole.alone == pytest.approx(21.05, abs=0.01)
    assert grouped.epsilon == pytest.approx(3.84, abs=0.01)
    assert grouped.epsilon > whole.epsilon
