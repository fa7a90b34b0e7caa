"""Robust means under local noise. Oracles: numpy and scipy, and the distribution of Laplace noise for their cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import trim_mean

from backend.federation.errors import RoundImpossible
from backend.federation.rounds.coordinator import Coordinator
from backend.federation.strategies.fedavg import Centre, Median, Stacked, TrimmedMean
from backend.federation.strategies.joined_sums import HUBER_TUNING, HUBER_VARIANCE, HuberLocation, HuberOfSums
from backend.federation.systems import COMPOSED
from protocol.ids import PROTOCOL_VERSION
from protocol.ring import WeightedSum
from protocol.rounds import CheckIn
from protocol.tensors import pack
from tests.doubles.clock import StillClock
from tests.doubles.small_release import WEIGHTS, migrated_engine, small_store

COHORT, COORDINATES, SCALE, MALICIOUS = 60, 4_000, 0.1, 6
LARGEST = 0.01 + 60 * SCALE


def test_median_and_trimmed_mean_match_numpy_and_scipy() -> None:
    stack = np.random.default_rng(0).normal(size=(20, 3, 5)).astype(np.float32)

    np.testing.assert_allclose(Median()(stack), np.median(stack.astype(np.float64), axis=0))
    np.testing.assert_allclose(TrimmedMean(0.1)(stack), trim_mean(stack.astype(np.float64), 0.1, axis=0))
    np.testing.assert_allclose(TrimmedMean(0.0)(stack), stack.astype(np.float64).mean(axis=0))
    assert TrimmedMean(0.4)(stack[:1]).shape == (3, 5), "of one update one is left"


@pytest.mark.parametrize("share", [-0.1, 0.5, 1.0])
def test_trimmed_mean_that_would_leave_no_update_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        TrimmedMean(share)


@pytest.mark.parametrize(
    ("centre", "least", "most"),
    [(Median(), 0.42, 0.65), (TrimmedMean(0.1), 0.55, 0.8)],
    ids=["median", "trimmed"],
)
def test_robust_means_have_less_variance_under_laplace_noise(centre: Centre, least: float, most: float) -> None:
    """4,000 coordinates estimate a variance to within 2.3 % (one deviation); the margins exceed four of those."""
    noise = np.random.default_rng(1).laplace(scale=SCALE, size=(COHORT, COORDINATES)).astype(np.float32)
    ratio = float(np.var(centre(noise)) / np.var(noise.mean(axis=0)))

    assert least < ratio < most


@pytest.mark.parametrize(("centre", "most"), [(Median(), 0.2), (TrimmedMean(0.1), 0.45)], ids=["median", "trimmed"])
def test_ten_percent_malicious_updates_move_the_mean_far_but_robust_means_little(centre: Centre, most: float) -> None:
    rng = np.random.default_rng(2)
    stack = rng.laplace(scale=SCALE, size=(COHORT, COORDINATES)).astype(np.float32)
    stack[:MALICIOUS] = LARGEST
    moved = float(centre(stack).mean()) / SCALE

    assert float(stack.mean(axis=0).mean()) / SCALE == pytest.approx(6.0, abs=0.1)
    assert 0.05 < moved < most


def test_false_updates_below_the_noise_move_robust_and_plain_means_equally() -> None:
    rng = np.random.default_rng(3)
    stack = rng.laplace(scale=SCALE, size=(COHORT, COORDINATES)).astype(np.float32)
    stack[:MALICIOUS] += np.float32(SCALE)
    for centre in (Median(), TrimmedMean(0.1)):
        assert float(centre(stack).mean()) / SCALE == pytest.approx(0.1, abs=0.05)
    assert float(stack.mean()) / SCALE == pytest.approx(0.1, abs=0.02)


def test_robust_means_drop_minority_interests_when_noise_is_small() -> None:
    """The price: 6 of 60 readers have a gradient of 1 in a coordinate, whose mean is 0.1."""
    stack = np.random.default_rng(4).laplace(scale=0.01, size=(COHORT, COORDINATES)).astype(np.float32)
    stack[:MALICIOUS] += 1

    assert float(stack.mean(axis=0).mean()) == pytest.approx(0.1, abs=0.001)
    assert abs(float(Median()(stack).mean())) < 0.01
    assert abs(float(TrimmedMean(0.1)(stack).mean())) < 0.01


def test_empty_stack_has_no_mean_and_sums_are_the_mean_times_the_count() -> None:
    stack = Stacked({"g.a": (2,)}, Median())
    with pytest.raises(ValueError, match="zero updates"):
        stack.mean()
    for value in (1.0, 2.0, 30.0):
        stack.add({"g.a": np.full(2, value, np.float32)})

    assert stack.count == 3
    np.testing.assert_array_equal(stack.mean()["g.a"], [2.0, 2.0])
    np.testing.assert_array_equal(stack.sums()["g.a"], [6.0, 6.0])


def test_secure_sum_has_no_robust_mean() -> None:
    with pytest.raises(ValueError, match="the server doesn't see single updates"):
        replace(COMPOSED["small_ranker/secure/median"], centre=Median())


def test_live_round_with_a_median_resists_a_malicious_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(COMPOSED["uni_fedrec"], name="uni_fedrec_median", centre=Median())
    monkeypatch.setitem(COMPOSED, spec.name, spec)
    engine = migrated_engine(tmp_path)
    releases = small_store(engine, tmp_path)
    coordinator = Coordinator(engine, releases, COMPOSED, tmp_path, StillClock())
    coordinator.open_round(spec.name, cohort=5, cohort_minimum=5, seconds=60.0)
    for value in (0.01, 0.02, 0.03, 0.04, 0.69):
        offer = coordinator.check_in(CheckIn(protocol=PROTOCOL_VERSION, release=1, tasks=("recall",)))
        assert offer is not None
        update = {f"g.{name}": np.full_like(each, value) for name, each in WEIGHTS.items()}
        coordinator.plain.accept("round-1", offer.pseudonym, pack(update))
    ended = coordinator.step()

    assert ended is not None
    assert ended.state == "applied"
    stepped = releases.weights(releases.require_current(), "recall")
    for name, before in WEIGHTS.items():
        np.testing.assert_allclose(stepped[name], before - 0.05 * 0.03, rtol=0, atol=1e-6)


def test_updates_exceeding_memory_are_refused_before_the_round_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(COMPOSED["uni_fedrec"], name="uni_fedrec_median", centre=Median())
    monkeypatch.setitem(COMPOSED, spec.name, spec)
    monkeypatch.setattr("backend.federation.rounds.opening.STACK_LIMIT_BYTES", 4 * 100)
    engine = migrated_engine(tmp_path)
    coordinator = Coordinator(engine, small_store(engine, tmp_path), COMPOSED, tmp_path, StillClock())
    with pytest.raises(RoundImpossible, match="keeps all updates in memory"):
        coordinator.open_round(spec.name, cohort=60, cohort_minimum=5, seconds=60.0)


def test_hubers_location_solves_its_equation() -> None:
    """Oracle: scipy's root of sum_g psi(n_g (x_g - m)), by coordinate, with two of seven groups malicious."""
    devices, deviation = (24, 24, 25, 30, 12, 24, 26), 1.09
    rng = np.random.default_rng(5)
    each = np.array(devices)
    means = rng.normal(size=(7, 40)) * deviation / np.sqrt(each)[:, None]
    means[:2] += rng.choice([-3.0, 3.0], size=(2, 40))
    found = HuberLocation(devices, deviation)(means)

    def excess(middle: float, column: np.ndarray) -> float:
        reach = HUBER_TUNING * deviation * np.sqrt(each)
        return float(np.clip(each * (column - middle), -reach, reach).sum())

    roots = [brentq(excess, -5, 5, args=(column,), xtol=1e-12) for column in means.T]
    np.testing.assert_allclose(found, roots, atol=1e-6)


def test_huber_location_is_the_mean_without_outliers_and_the_median_without_noise() -> None:
    devices = (24, 30, 12)
    means = np.array([[0.1], [0.2], [0.0]])
    np.testing.assert_allclose(HuberLocation(devices, 5.0)(means), [(2.4 + 6.0) / 66])
    np.testing.assert_allclose(HuberLocation(devices, 0.0)(means), [0.1])


@pytest.mark.parametrize("groups", [3, 8, 40])
def test_joined_group_sums_have_the_stated_noise_and_no_bias(groups: int) -> None:
    """20,000 coordinates estimate a variance to within 1 % (one deviation); the margin exceeds three of those."""
    rng, devices, share = np.random.default_rng(groups), 24, 1.09
    sums = [WeightedSum({"a": 7 + rng.normal(0, share * devices**0.5, 20_000)}, devices) for _ in range(groups)]
    total = HuberOfSums().join(sums, None, share**2)
    noise = total.sums()["a"] - 7 * groups
    expected = groups * devices * share**2
    assert total.noise_growth == HUBER_VARIANCE
    assert 0.965 * expected < noise.var() < 1.035 * HUBER_VARIANCE * expected
    assert abs(noise.mean()) < 5 * (expected / 20_000) ** 0.5


def test_contribution_of_a_group_is_bounded_and_symmetric_noise_stays() -> None:
    """Two groups of three are malicious, each with 40 clicks of 23 devices; the third has 0. Without noise the median
    decides."""
    sums = [WeightedSum({"a": np.array([said, 3.0]), "b": np.array([said])}, 23) for said in (40.0, 40.0, 0.0)]
    total = HuberOfSums(most={"a": 1.0}).join(sums, None)
    np.testing.assert_allclose(total.sums()["a"], [69, 9])
    np.testing.assert_allclose(total.sums()["b"], [120], err_msg="nothing is said of it")
    rng, share = np.random.default_rng(3), 1.09
    empty = [WeightedSum({"a": rng.normal(0, share * 2**0.5, 20_000)}, 2) for _ in range(3)]
    bounded, free = (HuberOfSums(most=most).join(empty, None, share**2).sums()["a"] for most in ({"a": 1.0}, {}))
    assert abs((bounded - free).mean()) < 0.002, "its noise is larger than what two devices can give"
