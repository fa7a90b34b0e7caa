"""Cohorts dealt into groups with a sum each: how many, and what a release gate of groups takes for a fall."""

from __future__ import annotations

import numpy as np
import pytest

from backend.federation.secagg.parts import CohortSplit
from backend.federation.strategies.release_gate import judge_sums
from backend.federation.strategies.robust_mean import MedianOfSums
from backend.federation.systems import SYSTEMS
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
