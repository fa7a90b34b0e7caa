"""The rule of the release gate. Oracles: the normal distribution, and gains drawn by the test."""

from __future__ import annotations

import numpy as np
import pytest

from backend.federation.strategies.release_gate import Score, judge
from backend.federation.systems.release_gate import RELEASE_GATE
from protocol.ring import BOUND, GAIN_LIMIT, SHAPES, written


def sums_of(gains: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sums of devices with these gains, in AUC; every level is 0.6."""
    parts = [written(0.6 + gain, 0.6) for gain in gains]
    return {name: np.array([sum(part[name] for part in parts)]) for name in SHAPES}


def test_gain_and_error_of_a_verdict_match_numpy() -> None:
    gains = np.random.default_rng(0).normal(-0.004, 0.006, 400).clip(-GAIN_LIMIT, GAIN_LIMIT)
    verdict = judge(sums_of(gains), 400, 0.0, tolerance=0.003, confidence=0.95)

    assert verdict.gain == pytest.approx(gains.mean(), abs=1e-12)
    assert verdict.error == pytest.approx(gains.std() / 20, rel=1e-9)
    assert verdict.auc == pytest.approx(0.6 + gains.mean(), abs=1e-12)
    assert verdict.falls, "0.004 is ten errors below nothing"


def test_reported_auc_error_matches_the_noise_in_its_sum() -> None:
    """Oracle: equal votes under 4,000 draws of noise."""
    gains, dice, noise = np.full(40, 0.0), np.random.default_rng(5), 0.4
    sums = sums_of(gains)
    draws = [{name: each + dice.normal(0, noise, 1) for name, each in sums.items()} for _ in range(4_000)]
    found = [judge(each, 40, noise, tolerance=0.003, confidence=0.95).auc for each in draws]
    # the noise in the sum of squares counts as a difference between devices, so it is set aside here
    error = judge(sums, 40, noise, tolerance=0.003, confidence=0.95).error
    reported = Score("round-1", "r2", "r1", "ranker.features", found[0], 0.0, error, 40, False).auc_error
    assert np.std(found) == pytest.approx(reported, rel=0.05)


@pytest.mark.parametrize(
    ("gain", "spread", "falls"),
    [(-0.0025, 0.001, False), (-0.004, 0.001, True), (-0.02, 0.0, True), (0.01, 0.001, False)],
    ids=["within the tolerance", "clear", "all alike", "better"],
)
def test_release_fails_only_beyond_the_tolerance(gain: float, spread: float, falls: bool) -> None:
    gains = gain + spread * np.tile([-1, 1], 50)
    assert judge(sums_of(gains), 100, 0.0, tolerance=0.003, confidence=0.95).falls is falls


def test_decline_within_the_noise_does_not_fail() -> None:
    gains = np.full(100, -0.004)
    quiet = judge(sums_of(gains), 100, 0.0, tolerance=0.003, confidence=0.95)
    loud = judge(sums_of(gains), 100, 20.0, tolerance=0.003, confidence=0.95)

    assert (quiet.falls, loud.falls) == (True, False)


def test_share_of_good_releases_rolled_back_is_within_the_stated_error_rate() -> None:
    """4,000 gates of 60 devices: 5 % of them is 200, and a binomial passes 240 with probability below 0.2 %."""
    rng = np.random.default_rng(5)
    noise = RELEASE_GATE.protection.sigma * 2.0**-16 * np.sqrt(60)  # type: ignore[union-attr]
    fallen = 0
    for _ in range(4_000):
        exact = sums_of(rng.normal(0.0, 0.01, 60))
        noisy = {name: each + rng.normal(0.0, noise) for name, each in exact.items()}
        fallen += judge(noisy, 60, noise, tolerance=0.003, confidence=0.95).falls

    assert 20 < fallen <= 240


def test_decline_of_the_stated_size_is_detected_with_80_percent_power() -> None:
    """1,000 gates: a binomial of 0.8 stays above 750 with probability above 99.9 %."""
    rng = np.random.default_rng(6)
    noise = RELEASE_GATE.protection.sigma * 2.0**-16 * np.sqrt(60)  # type: ignore[union-attr]
    reported = np.sqrt(0.01**2 / 60 + (GAIN_LIMIT * noise / 60) ** 2) * (1.645 + 0.8416)
    found = 0
    for _ in range(1_000):
        exact = sums_of(rng.normal(-reported, 0.01, 60))
        noisy = {name: each + rng.normal(0.0, noise) for name, each in exact.items()}
        found += judge(noisy, 60, noise, tolerance=0.0, confidence=0.95).falls

    assert found > 700, "noise in the spread costs a little of the power"


def test_device_vote_stays_within_the_bound() -> None:
    for new, old in ((1.0, 0.0), (0.0, 1.0), (0.7, 0.69)):
        numbers = written(new, old)
        assert sum(each**2 for each in numbers.values()) <= BOUND**2 + 1e-12
