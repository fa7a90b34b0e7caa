"""Rounds over replayed readers. Oracles: the weighted mean by hand, and the live system's noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.federation.strategies.joined_sums import JoinedSums
from backend.federation.systems import COMPOSED
from device_app.training.tasks.task import Update
from experiments.bench.replayed_readers import clip_factor, opened, shown_only, summed, uncounted
from experiments.datasets.mind import RaggedArray
from experiments.datasets.samples import TrainingSamples
from experiments.simulation.readers import Library
from protocol.protections import SecureSum

SMALL_RANKER_SECURE = COMPOSED["small_ranker/secure/median"]


class Devices:
    """Reader u's update is a vector of u + 1 with u + 1 samples."""

    def update(self, params: object, reader: int, round_number: int) -> Update:
        return Update({"g.w": np.full(4, reader + 1.0, np.float32)}, 0.0, reader + 1)


def test_readers_are_weighted_by_their_samples_and_clipped() -> None:
    protection = SecureSum(clip=4.0, weight_limit=2, cohort_limit=100)
    total = opened(Devices(), {}, [0, 1, 2], 1, protection, np.random.default_rng(0))
    # lengths 2, 4, 6: the third is scaled to 4, which is 2 a coordinate, and weighs 2 as the limit has it
    np.testing.assert_allclose(total.tensors["g.w"] / total.samples, (1 * 1 + 2 * 2 + 2 * 2) / 5)


def test_noise_is_the_sum_of_every_survivors_share() -> None:
    protection = SecureSum(clip=0.1, sigma=4_900)
    rng = np.random.default_rng(0)

    class ZeroUpdateDevices(Devices):
        def update(self, params: object, reader: int, round_number: int) -> Update:
            return Update({"g.w": np.zeros(20_000, np.float32)}, 0.0, 3)

    total = opened(ZeroUpdateDevices(), {}, list(range(60)), 1, protection, rng)
    noise: NDArray[np.float64] = total.tensors["g.w"] / 60
    assert noise.std() == pytest.approx(4_900 / 2**16 / np.sqrt(60), rel=0.03)


@pytest.mark.parametrize(("cohort", "groups"), [(35, 0), (36, 3), (60, 5)])
def test_large_cohort_is_split_into_groups_and_a_smaller_one_is_not(cohort: int, groups: int) -> None:
    readers = list(range(cohort))
    total = summed(Devices(), {}, readers, 1, SMALL_RANKER_SECURE, np.random.default_rng(0))
    assert total.count == cohort
    assert isinstance(total, JoinedSums) is (groups > 0)
    if isinstance(total, JoinedSums):
        assert len(total.means_of_groups("g.w")) == groups
        assert total.room == pytest.approx(np.pi / 2 * cohort * (4_900 / 2**16) ** 2)


def test_zero_update_is_not_scaled_by_clipping() -> None:
    assert clip_factor(Update({"g.w": np.zeros(3, np.float32)}, 0.0, 1), 0.1) == 1.0


def test_only_samples_with_a_shown_list_are_kept_and_readers_renumbered() -> None:
    samples = TrainingSamples(
        reader=np.array([0, 1, 1, 2]),
        clicks=np.arange(8).reshape(4, 2),
        positive=np.array([5, 6, 7, 8]),
        shown=RaggedArray.of([np.zeros(0, np.int64), np.array([1]), np.zeros(0, np.int64), np.array([2, 3])]),
        read=(frozenset({5}), frozenset({6, 7}), frozenset({8})),
        popular=np.array([1, 2]),
        news=9,
    )
    kept = shown_only(samples)
    np.testing.assert_array_equal(kept.reader, [0, 1])
    np.testing.assert_array_equal(kept.positive, [6, 8])
    assert kept.read == (frozenset({6, 7}), frozenset({8}))
    assert [kept.shown[row].tolist() for row in range(2)] == [[1], [2, 3]]


def test_replay_sets_the_popularity_feature_to_zero() -> None:
    whole = Library.of(np.eye(3, dtype=np.float32), lambda clicks, shown: np.ones((*shown.shape, 4), np.float32))
    features = uncounted(whole).features
    assert features is not None
    found = features(np.zeros((1, 2), np.int64), np.zeros((1, 3), np.int64))
    np.testing.assert_array_equal(found[0, 0], [1, 1, 0, 1])
