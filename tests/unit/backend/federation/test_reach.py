"""How far a mean under noise may reach. Oracles: drawn noise against a proven share, and the properties of projections.

Each statistical test fails by chance with a probability of at most 1e-8: estimates are held to six standard errors.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate, length, reach, within_ball
from backend.federation.grouping import Constant, Layers, Models
from backend.federation.optimizers import Sgd
from backend.federation.protections.registry import resolve
from backend.federation.strategies.fedavg import Median
from backend.federation.strategies.grouped import MEMBER_SHARE, MEMBERS, Grouped
from backend.federation.strategies.joined_sums import MEDIAN_VARIANCE, JoinedSums, MedianOfSums
from protocol.protections import SecureSum
from protocol.ring import WeightedSum

PROTECTION = SecureSum(clip=0.1, sigma=4_900)
SHARE = resolve(PROTECTION).noise_variance(1)
NUMBERS, GROUPS, DEVICES = 262, 5, 12
ERRORS = 6.0
Vector = NDArray[np.float64]


def least_kept(coordinates: int) -> float:
    """Return the least share of the honest mean that is kept, in expectation: docs/decisions/009."""
    return 1 - 1 / math.sqrt(8 * coordinates) - 1 / coordinates


def kept_share(honest: Vector, seen: Vector) -> tuple[float, float]:
    """Return the share of `honest` [d] that the rows of `seen` [n, d] keep on average, and its standard error."""
    shares = seen @ honest / (honest @ honest)
    return float(shares.mean()), float(shares.std() / math.sqrt(len(shares)))


def pointing(norm: float, coordinates: int, seed: int) -> Vector:
    drawn = np.random.default_rng(seed).normal(size=coordinates)
    return np.asarray(norm * drawn / np.linalg.norm(drawn))


def sums_of(honest: Vector, rng: np.random.Generator) -> list[WeightedSum]:
    """Return sums of five groups whose devices all send `honest`."""
    spread = math.sqrt(SHARE * DEVICES)
    return [
        WeightedSum({"g.w": DEVICES * honest + rng.normal(scale=spread, size=len(honest))}, DEVICES)
        for _ in range(GROUPS)
    ]


@pytest.mark.parametrize("coordinates", [4, 262, 4_096])
@pytest.mark.parametrize("noise", [0.1, 1.0, 6.0])
def test_projection_keeps_at_least_the_proven_share_of_an_honest_mean(coordinates: int, noise: float) -> None:
    """noise: its length relative to the clip; the honest mean is as long as the clip, which is the worst case."""
    honest = pointing(PROTECTION.clip, coordinates, 0)
    deviation = noise * PROTECTION.clip / math.sqrt(coordinates)
    rng, draws = np.random.default_rng(1), 2_000_000 // coordinates
    drawn = honest + rng.normal(scale=deviation, size=(draws, coordinates))
    limit = reach(PROTECTION.clip, deviation**2, coordinates)
    share, error = kept_share(honest, drawn * np.minimum(1, limit / np.linalg.norm(drawn, axis=1))[:, None])
    assert least_kept(coordinates) - ERRORS * error <= share <= 1 + ERRORS * error
    assert error < 0.02
    if noise > 1:
        short, error = kept_share(
            honest, drawn * np.minimum(1, PROTECTION.clip / np.linalg.norm(drawn, axis=1))[:, None]
        )
        assert short + ERRORS * error < 0.25, "regression: projected onto the clip itself, little of it is left"


@pytest.mark.parametrize("norm", [PROTECTION.clip, PROTECTION.clip / 2])
def test_bound_on_joined_sums_shortens_an_honest_mean_less_than_the_clip_does(norm: float) -> None:
    honest, rng = pointing(norm, NUMBERS, 2), np.random.default_rng(3)
    joined = [MedianOfSums().join(sums_of(honest, rng), PROTECTION.clip, SHARE).mean() for _ in range(2_000)]
    share, error = kept_share(honest, np.stack([each["g.w"] for each in joined]))
    assert least_kept(NUMBERS) - ERRORS * error <= share <= 1 + ERRORS * error
    assert error < 0.01
    before = [within_ball(each, PROTECTION.clip)["g.w"] for each in joined]
    share, error = kept_share(honest, np.stack(before))
    assert share + ERRORS * error < 0.6


@pytest.mark.parametrize("size", [0.05, 0.5, 5.0, 1e6])
def test_projection_bounds_how_far_a_false_update_moves_the_mean(size: float) -> None:
    """A projection onto a convex set brings no two points further apart."""
    rng, limit = np.random.default_rng(4), reach(PROTECTION.clip, MEDIAN_VARIANCE * SHARE / (GROUPS * DEVICES), NUMBERS)
    assert limit < 2.3 * PROTECTION.clip
    total = JoinedSums([WeightedSum({"g.w": np.zeros(NUMBERS)}, 60)], np.mean, PROTECTION.clip)  # type: ignore[arg-type]
    total.room = MEDIAN_VARIANCE * SHARE * 60
    for _ in range(100):
        truth, change = rng.normal(scale=0.012, size=NUMBERS), pointing(size, NUMBERS, int(rng.integers(2**31)))
        honest, forged_mean = total.within_reach({"w": truth}), total.within_reach({"w": truth + change})
        assert length(forged_mean) <= limit * (1 + 1e-12)
        assert np.linalg.norm(forged_mean["w"] - honest["w"]) <= min(size, 2 * limit) * (1 + 1e-9)


def test_mean_with_one_forged_group_of_five_stays_between_the_others() -> None:
    honest, rng = pointing(PROTECTION.clip / 2, NUMBERS, 5), np.random.default_rng(6)
    for _ in range(200):
        sums = sums_of(honest, rng)
        others = np.stack([each.tensors["g.w"] / DEVICES for each in sums[1:]])
        forged = WeightedSum({"g.w": sums[0].tensors["g.w"] + pointing(1e4, NUMBERS, 7)}, DEVICES)
        mean = MedianOfSums().join([forged, *sums[1:]], PROTECTION.clip, SHARE).mean()["g.w"]
        assert (np.abs(mean) <= np.abs(others).max(axis=0) + 1e-12).all()
        assert np.linalg.norm(mean) <= reach(PROTECTION.clip, MEDIAN_VARIANCE * SHARE / 60, NUMBERS) * (1 + 1e-12)


def test_mean_of_a_single_sum_is_at_most_the_clip() -> None:
    honest = pointing(PROTECTION.clip, NUMBERS, 8)
    [noisy, *_] = sums_of(honest, np.random.default_rng(9))
    assert length(Aggregate.of_opened(noisy, PROTECTION.clip).mean()) == pytest.approx(PROTECTION.clip)
    assert length(Aggregate.of_opened(noisy).mean()) > 3 * PROTECTION.clip, "no radius, no bound"


def test_group_steps_are_bounded_by_their_own_noise() -> None:
    """Regression: each group's step was held to the clip, though noise on a group's mean is four times that on
    everybody's."""
    groups, numbers, rate = 4, 30, 0.5
    blocks = np.full((groups, numbers), 1e3)
    members = np.full(groups, DEVICES / groups * MEMBER_SHARE * PROTECTION.clip)
    sums = [WeightedSum({"g.w": blocks, MEMBERS: members}, DEVICES) for _ in range(GROUPS)]
    total = JoinedSums(sums, Median(), PROTECTION.clip, noise_growth=MEDIAN_VARIANCE, noise_variance=SHARE)
    strategy = Grouped(Layers(("w",)), Constant(1.0), 10, "prototypes")
    start = Models.alike({"w": np.zeros(numbers)}, groups)
    after, counted = strategy.advance(start, total, PROTECTION, Sgd(rate))
    np.testing.assert_allclose(counted, 15.0)
    room = MEDIAN_VARIANCE * SHARE * 60
    shared, own = (
        rate * reach(PROTECTION.clip, groups * room / 60**2, numbers),
        rate * reach(PROTECTION.clip, room / 15**2, numbers),
    )
    assert np.linalg.norm(after.shared.weights["w"]) == pytest.approx(shared)
    assert [float(np.linalg.norm(each.weights["w"])) for each in after.groups] == pytest.approx([own] * groups)
