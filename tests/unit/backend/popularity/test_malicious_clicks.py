"""Malicious devices among n in a count: what they add to the rows. Oracle: the same count without the forged clicks.

The attackers know everything public, so every form that the bounds of the sums accept is tried.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from backend.federation.protections.sum_bounds import noise_deviation
from backend.federation.systems import COMPOSED
from backend.settings import BackendSettings
from experiments.attacks.attacks import PROTECTION, CountedCohort

PRIVATE_COUNTS = COMPOSED["private_counts/secure/huber"]

DEFAULT = BackendSettings.model_fields["counts_cohort"].default
JOIN = PRIVATE_COUNTS.join
NEWS, DRAWS = 300, 4


def cohort(devices: int, *, malicious: int = 1, live: bool = True) -> CountedCohort:
    return CountedCohort(devices, malicious, JOIN if live else None, NEWS, DRAWS)


@pytest.mark.parametrize(
    ("devices", "groups"), [(20, 1), (40, 1), (DEFAULT, 1), (65, 1), (66, 3), (70, 3), (71, 3), (76, 3), (200, 9)]
)
def test_malicious_device_adds_at_most_one_devices_clicks_and_the_noise(devices: int, groups: int) -> None:
    """Regression, from about 70 devices on: in one sum nobody can tell whose clicks it holds."""
    counted = cohort(devices)
    assert counted.groups == groups
    assert 1 < counted.strongest().mean <= counted.tail


@pytest.mark.parametrize("devices", [66, 76, 88, 200, 500])
def test_three_malicious_devices_among_groups_add_no_more_than_one(devices: int) -> None:
    """Regression, at 76 devices: two groups of three claimed more than their devices could give, and outvoted the
    third."""
    counted = replace(cohort(devices, malicious=3), draws=12)  # of the ways in which three are dealt to groups
    assert 1 < counted.strongest().mean <= counted.tail


def test_one_malicious_device_can_add_many_clicks_to_a_single_sum_of_two_hundred() -> None:
    counted = cohort(200, live=False)
    added = counted.strongest()
    assert added.mean > counted.tail
    assert added.mean <= 200 + noise_deviation(PROTECTION, 200), "what all of them could give is the limit there"
