"""A device's vector for a secure sum. Oracle: the same sums in float64."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.private_parameters import SharedUpdate, shared_part
from device_app.privacy.protections.protection import ComputedUpdate
from device_app.privacy.protections.registry import SecureSumProtection
from device_app.privacy.protections.secure_sum import NormClipped, clip_norm, contribute
from protocol.protections import SecureSum
from protocol.releases import ModelEntry
from protocol.ring import as_integers

MODEL = ModelEntry(architecture="a", role="ranker", graphs={}, private=("own",))
EXACT = SecureSum(clip=1.0, weight_limit=32)
NOISY = SecureSum(clip=1.0, sigma=500)


def update(scale: float = 0.05) -> SharedUpdate:
    rng = np.random.default_rng(3)
    tensors = {
        name: (scale * rng.normal(size=shape)).astype(np.float32) for name, shape in (("g.w", (3, 4)), ("g.b", (5,)))
    }
    return shared_part(tensors | {"g.own": np.ones(2, np.float32)}, MODEL)


def norm(update: SharedUpdate) -> float:
    return float(np.linalg.norm(np.concatenate([each.astype(np.float64).ravel() for each in update.tensors.values()])))


@pytest.mark.parametrize(("scale", "length"), [(0.05, None), (7.0, 1.0), (1e30, 1.0), (0.0, 0.0)])
def test_update_is_scaled_into_the_ball_and_a_shorter_one_stays(scale: float, length: float | None) -> None:
    given = update(scale)
    clipped = clip_norm(given, 1.0).update
    assert norm(clipped) == pytest.approx(norm(given) if length is None else length, rel=1e-6)
    cosine = sum(
        float((given.tensors[name].astype(np.float64) * clipped.tensors[name]).sum()) for name in given.tensors
    )
    assert cosine == pytest.approx(norm(given) * norm(clipped), rel=1e-5), "only its length changes"


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_non_finite_update_is_refused(odd: float) -> None:
    given = update()
    given.tensors["g.b"][2] = odd
    with pytest.raises(ValueError, match="not finite"):
        clip_norm(given, 1.0)


def test_clipped_update_must_respect_its_norm() -> None:
    with pytest.raises(ValueError, match=r"above 0\.1"):
        NormClipped(update(7.0), 0.1)


def test_vector_without_noise_is_the_weighted_update_and_has_no_epsilon() -> None:
    given = clip_norm(update(), 1.0)
    terms = EXACT.terms("round-1", cohort=5, cohort_minimum=3, coordinates=17)
    made = contribute(given, 40, EXACT, terms, SeededNoise(0))
    values = as_integers(made.vector)
    assert values[-1] == 32, "n_u is capped"
    flat = np.concatenate([given.update.tensors[name].astype(np.float64).ravel() for name in ("g.b", "g.w")])
    np.testing.assert_array_equal(values[:-1], np.rint(32 * flat * 2**16))
    assert (made.charge.channel, made.charge.mechanism, made.charge.epsilon) == ("training", "secure_sum", 0.0)
    assert made.charge.parameters["sigma"] == 0.0
    assert made.charge.parameters["rounded_to_zero"] == 0.0


@pytest.mark.parametrize(("limit", "weight"), [(32, 0), (1, 1)])
def test_zero_update_has_zero_weight_only_in_weighted_sums(limit: int, weight: int) -> None:
    protection = SecureSum(clip=1.0, weight_limit=limit)
    terms = protection.terms("round-1", cohort=5, cohort_minimum=3, coordinates=17)
    values = as_integers(contribute(clip_norm(update(0.0), 1.0), 0, protection, terms, SeededNoise(0)).vector)
    assert values[-1] == weight
    assert not values[:-1].any()


def test_noisy_sum_counts_devices_equally_and_charges_for_fewest_survivors() -> None:
    given = clip_norm(update(), 1.0)
    terms = NOISY.terms("round-1", cohort=5, cohort_minimum=3, coordinates=17)
    flat = np.concatenate([given.update.tensors[name].astype(np.float64).ravel() for name in ("g.b", "g.w")])
    off = []
    for seed in range(60):
        made = contribute(given, 40, NOISY, terms, SeededNoise(seed))
        values = as_integers(made.vector)
        assert values[-1] == 1
        off.append(values[:-1] - np.rint(flat * 2**16))
    # 1,020 draws: the sample's deviation is within 15 % of sigma but for one run in 10^10.
    assert np.std(off) == pytest.approx(500, rel=0.15)
    assert (made.charge.epsilon, made.charge.delta) == (NOISY.epsilon(3, 17), 1e-6)


def test_update_clipped_above_the_rounds_limit_is_refused() -> None:
    terms = EXACT.terms("round-1", cohort=5, cohort_minimum=3, coordinates=17)
    with pytest.raises(ValueError, match="the round's limit is 1"):
        contribute(clip_norm(update(), 2.0), 1, EXACT, terms, SeededNoise(0))


@pytest.mark.parametrize("norm_of_ball", [1e-3, 1e-5])
def test_longest_possible_update_is_clipped_into_the_smallest_ball(norm_of_ball: float) -> None:
    """The factor is below the smallest normal float32.

    Regression: it was rounded to one, so the update exceeded the ball.
    """
    longest = SharedUpdate({"g": np.full(50, np.finfo(np.float32).max)}, None)
    assert norm(clip_norm(longest, norm_of_ball).update) == pytest.approx(norm_of_ball, rel=1e-6)


def test_negative_values_are_sent_as_zero_in_a_nonnegative_sum() -> None:
    """A round may ask for a gradient under this protection, and a release may make it negative for some clicks."""
    protection = SecureSum(clip=1.0, nonnegative=True)
    given = SharedUpdate({"g": np.array([-0.5, 0.25, 0.0], np.float32)}, None)
    terms = protection.terms("round-1", cohort=3, cohort_minimum=3, coordinates=3)
    manifest = SimpleNamespace(round="round-1", terms=terms)
    made = SecureSumProtection(protection).contribute(
        ComputedUpdate(given, samples=1),
        manifest,  # type: ignore[arg-type]
        noise=SeededNoise(1),
        delta=1e-6,
    )
    assert terms.fixed_point().decode(made.vector[:-1]).tolist() == [0.0, 0.25, 0.0]
