"""Bounds of opened sums, and means of groups. Oracles: scipy's chi distribution, drawn noise, and numpy's median."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi

from backend.federation.bounded_mean import Aggregate, length
from backend.federation.errors import UpdateRefused
from backend.federation.protections.sum_bounds import TAIL, check_sum, noise_length, noise_reach, too_alike
from backend.federation.strategies.counting import possible_counts
from backend.federation.strategies.fedavg import Median
from backend.federation.strategies.joined_sums import JoinedSums
from protocol.protections import SecureSum
from protocol.ring import WeightedSum

PROTECTION = SecureSum(clip=0.1, sigma=4_900)
DEVIATION = 4_900 / 2**16


def summed(vector: np.ndarray, devices: int) -> WeightedSum:
    return WeightedSum({"g.w": vector.astype(np.float64)}, devices)


@pytest.mark.parametrize("coordinates", [3, 262, 16_384])
def test_noise_length_bound_is_above_its_quantile_and_tight(coordinates: int) -> None:
    quantile = float(chi.isf(TAIL, coordinates))
    assert quantile <= noise_length(1.0, coordinates) <= 1.35 * quantile
    assert noise_length(1.0, coordinates) <= np.sqrt(coordinates) + np.sqrt(2 * np.log(1 / TAIL))
    assert noise_length(0.0, coordinates) == noise_reach(0.0, coordinates) == 0.0


def test_honest_sums_pass_and_out_of_bounds_ones_are_refused() -> None:
    rng, devices, d = np.random.default_rng(0), 13, 262
    for _ in range(1_000):
        directions = rng.normal(size=(devices, d))
        vectors = PROTECTION.clip * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        noise = rng.normal(scale=DEVIATION * np.sqrt(devices), size=d)
        check_sum(PROTECTION, summed(vectors.sum(axis=0) + noise, devices), devices)
    added = np.full(d, 2 * (PROTECTION.clip * devices + noise_length(DEVIATION * np.sqrt(devices), d)) / np.sqrt(d))
    with pytest.raises(UpdateRefused, match=r"norm is .* more than honest updates allow"):
        check_sum(PROTECTION, summed(added, devices), devices)
    with pytest.raises(UpdateRefused, match=r"largest number is 6, more"):
        check_sum(PROTECTION, summed(6.0 * np.eye(1, d)[0], devices), devices)


@pytest.mark.parametrize("samples", [12, 14])
def test_every_device_counts_once_under_noise(samples: int) -> None:
    with pytest.raises(UpdateRefused, match="samples of 13 devices"):
        check_sum(PROTECTION, summed(np.zeros(3), samples), 13)


def test_weighted_sum_may_contain_devices_without_samples() -> None:
    weighed = SecureSum(clip=1.0, weight_limit=32)
    check_sum(weighed, summed(np.full(3, 0.5), 2), 13)
    with pytest.raises(UpdateRefused, match="anything to train on"):
        check_sum(weighed, summed(np.zeros(3), 0), 13)
    with pytest.raises(UpdateRefused, match="samples of 13 devices"):
        check_sum(weighed, summed(np.zeros(3), 13 * 32 + 1), 13)


def groups_with(added: np.ndarray, malicious: int, rng: np.random.Generator) -> list[WeightedSum]:
    """Return five groups of twelve with an honest mean of half the clip; the first ones add `added` to it."""
    d, devices = len(added), 12
    honest = np.full(d, PROTECTION.clip / 2 / np.sqrt(d))
    noise = rng.normal(scale=DEVIATION * np.sqrt(devices), size=(5, d))
    return [summed(devices * (honest + (at < malicious) * added) + each, devices) for at, each in enumerate(noise)]


def test_false_update_is_detected_in_two_groups_but_not_in_a_single_one() -> None:
    """Regression: each group was checked alone, where a false update of .35 passes."""
    rng, d = np.random.default_rng(0), 262
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    for _ in range(200):
        for malicious, found in ((0, set()), (1, set()), (2, {0, 1}), (3, {0, 1, 2})):
            sums = groups_with(0.35 * direction, malicious, rng)
            for each in sums:
                check_sum(PROTECTION, each, 12)
            assert too_alike(sums, PROTECTION.clip, DEVIATION) == found


def test_honest_groups_that_agree_are_not_flagged() -> None:
    """The longest honest means, all in one direction: 400 rounds, of which a twentieth may be refused."""
    rng = np.random.default_rng(1)
    more = np.full(262, PROTECTION.clip / 2 / np.sqrt(262))
    found = sum(bool(too_alike(groups_with(more, 5, rng), PROTECTION.clip, DEVIATION)) for _ in range(400))
    assert found <= 20
    sums = [summed(np.full(4, 0.05) * 12, 12)] * 3
    assert too_alike(sums, 0.1, 0.0) == frozenset(), "without noise each sum's own bound is enough"
    assert too_alike(sums[:1], 0.1, 0.01) == frozenset()


def test_malicious_group_rarely_excludes_an_honest_one() -> None:
    """The forged mean follows the honest one, and is as long as its own bound accepts: .2 % of rounds."""
    rng = np.random.default_rng(2)
    added = np.full(262, 0.35 / np.sqrt(262))
    assert sum(bool(too_alike(groups_with(added, 1, rng), PROTECTION.clip, DEVIATION)) for _ in range(1_000)) <= 10


def test_mean_outside_the_ball_is_projected_and_a_mean_inside_stays() -> None:
    honest, forged = np.full(4, 0.04), np.full(4, 5.0)
    assert Aggregate.of_opened(summed(10 * honest, 10), 0.1).mean()["g.w"] == pytest.approx(honest)
    mean = Aggregate.of_opened(summed(10 * forged, 10), 0.1).mean()
    assert length(mean) == pytest.approx(0.1)
    assert mean["g.w"] == pytest.approx(np.full(4, 0.05))


def test_median_of_group_means_ignores_two_corrupted_groups_of_five() -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, 6))
    honest = JoinedSums([summed(12 * each, 12) for each in means], Median())
    assert honest.count == 60
    assert honest.mean()["g.w"] == pytest.approx(np.median(means, axis=0))
    assert honest.sums()["g.w"] == pytest.approx(60 * np.median(means, axis=0))
    spoiled = JoinedSums([summed(12 * (each + 1e6 * (row < 2)), 12) for row, each in enumerate(means)], Median())
    assert (spoiled.mean()["g.w"] <= means[2:].max(axis=0) + 1e-9).all()
    assert (spoiled.mean()["g.w"] >= means[2:].min(axis=0) - 1e-9).all()
    assert length(JoinedSums([summed(12 * each, 12) for each in means], Median(), 0.1).mean()) == pytest.approx(0.1)


def test_bounding_leaves_honest_counts_unchanged_and_unbiased() -> None:
    rng, devices, deviation = np.random.default_rng(0), 60, 8.4
    true = np.zeros(4_000)
    true[:50] = 6.0
    noisy = true + rng.normal(scale=deviation, size=4_000)
    kept = possible_counts(noisy, devices, 5, deviation)
    assert np.mean(kept == noisy) > 0.99
    assert abs(np.mean(kept - noisy)) < 0.01 * deviation
    forged = possible_counts(np.where(np.arange(4_000) == 7, 1e6, noisy), devices, 5, deviation)
    assert forged[7] <= devices
    assert forged.sum() - noisy.sum() <= devices + 3 * deviation
