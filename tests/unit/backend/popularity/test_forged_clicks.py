"""One forger among n devices of a count: what goes into the rows. Oracle: the same count without the forged clicks.

The forger knows all that is public, so it tries every form that the sum's bounds let through.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.federation.errors import UpdateRefused
from backend.federation.protections.sum_bounds import check_sum, noise_deviation, noise_reach
from backend.federation.strategies.counting import Counting, possible_counts
from backend.federation.systems.private_counts import PRIVATE_COUNTS
from backend.settings import BackendSettings
from device_app.wire.layout import WeightedSum
from device_app.wire.popularity import CLICKED, DISPLAYED
from device_app.wire.protections import SecureSum

NEWS = 300
COUNTING = Counting()
assert isinstance(PRIVATE_COUNTS.protection, SecureSum)
PROTECTION = PRIVATE_COUNTS.protection
Counts = NDArray[np.float64]


def forged(devices: int, lie: Counts, seed: int) -> Counts | None:
    """What the lie adds to the rows of one honest count; None if either is refused."""
    rng = np.random.default_rng(seed)
    deviation = noise_deviation(PROTECTION, devices)
    displays, clicks = np.zeros(NEWS), np.zeros(NEWS)
    for _ in range(devices - 1):
        shown = rng.choice(NEWS, size=COUNTING.displayed_limit, replace=False)
        displays[shown] += COUNTING.displayed_unit
        clicks[shown[: COUNTING.clicked_limit - 2]] += 1
    displays += rng.normal(0, deviation, NEWS)
    clicks += rng.normal(0, deviation, NEWS)
    rows = []
    for told in (clicks, clicks + lie):
        try:
            check_sum(PROTECTION, WeightedSum({CLICKED: told, DISPLAYED: displays}, devices), devices)
        except UpdateRefused:
            return None
        rows.append(possible_counts(told, devices, COUNTING.clicked_limit, deviation))
    return np.asarray(rows[1] - rows[0])


def most_for_one(devices: int) -> float:
    """The most that any form of lie gets through for one piece of news, the mean of three counts."""
    deviation = noise_deviation(PROTECTION, devices)
    reach = noise_reach(deviation, 2 * NEWS)

    def lies() -> Iterator[Counts]:
        for clicks in (1, 5, devices, devices + 3 * deviation, 0.8 * reach, devices + reach, 5 * devices):
            yield np.eye(1, NEWS)[0] * clicks
        for each in (0.5 * deviation, deviation, 2 * deviation):
            yield np.full(NEWS, each)

    means = []
    for lie in lies():
        got = [added for seed in range(3) if (added := forged(devices, lie, seed)) is not None]
        if got:
            means.append(float(np.mean([added.max() for added in got])))
    return max(means)


@pytest.mark.parametrize("devices", [20, 40, BackendSettings.model_fields["counts_cohort"].default])
def test_up_to_the_default_cohort_a_forger_adds_what_one_device_gives_and_the_noises_tail(devices: int) -> None:
    reach = noise_reach(noise_deviation(PROTECTION, devices), 2 * NEWS)
    assert 1 < most_for_one(devices) <= 1 + reach


@pytest.mark.parametrize("devices", [200, 1_000])
def test_in_a_larger_one_it_adds_what_all_devices_give_and_three_deviations_and_no_more(devices: int) -> None:
    """All of them may honestly click one story, and one sum doesn't tell whose clicks it holds: a limit below n would
    refuse honest counts. So above about 70 devices the bar of the noise's tail is missed, as the setting says."""
    deviation = noise_deviation(PROTECTION, devices)
    added = most_for_one(devices)
    assert added > 1 + noise_reach(deviation, 2 * NEWS), "where this no longer holds, the threat model is to be mended"
    assert added <= devices + 3 * deviation
