"""The parameters of a secure sum. Oracle: the ring's arithmetic, bounds by hand, and the concentrated account."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from protocol.concentrated import epsilon_of
from protocol.protections import SecureSum
from protocol.rounds import RoundManifest
from protocol.union import UnionMarks

GIVEN = {
    "round": "round-1", "release": "r1", "system": "s", "task": "full_gradient", "model": "m", "negatives": 4,
    "samples_limit": 32, "closes_at": "2026-11-21T12:00:00Z",
}  # fmt: skip


def test_sum_that_could_overflow_is_refused_with_the_limit() -> None:
    # n <= 50, n_u <= 100, |g| <= 1: f <= 18 with 32 bits, f <= 50 with 64.
    for bits, most in ((32, 18), (64, 50)):
        SecureSum(clip=1.0, weight_limit=100, cohort_limit=50, bits=bits, fraction_bits=most)  # type: ignore[arg-type]
        with pytest.raises(ValidationError, match=r"overflow: n X 2\^f"):
            SecureSum(
                clip=1.0, weight_limit=100, cohort_limit=50, bits=bits, fraction_bits=most + 1  # type: ignore[arg-type]
            )  # fmt: skip


def test_headroom_covers_ten_standard_deviations_of_noise() -> None:
    protection = SecureSum(clip=0.1, sigma=4_900, cohort_limit=900)
    assert protection.terms("round-1", cohort=400, cohort_minimum=10, coordinates=7).headroom == 10 * 4_900 * 20
    with pytest.raises(ValidationError, match="overflow"):
        SecureSum(clip=0.1, sigma=2**24, cohort_limit=900)


def test_noise_and_weights_cannot_be_combined() -> None:
    with pytest.raises(ValidationError, match="weight_limit: must be 1"):
        SecureSum(clip=0.1, sigma=1, weight_limit=2)


@pytest.mark.parametrize("cohort", [2, 100, 101, 900])
@pytest.mark.parametrize("protection", [SecureSum(clip=1.0), UnionMarks(owners_minimum=3)])
def test_sums_of_every_cohort_size_use_the_consistency_round(protection: SecureSum | UnionMarks, cohort: int) -> None:
    assert protection.terms("round-1", cohort=cohort, cohort_minimum=2, coordinates=7).mode == "active"


@pytest.mark.parametrize("rho", [1e30, 1e33, 1e38, math.inf, math.nan])
def test_huge_rho_has_a_huge_epsilon(rho: float) -> None:
    """Regression: at alpha rounded to 1 the formula gave NaN, which was taken for 0."""
    assert epsilon_of(rho, 1e-6) >= 1e30


def test_large_cohort_uses_sparse_masks_unless_configured_otherwise() -> None:
    protection = SecureSum(clip=1.0)
    assert protection.terms("round-1", cohort=100, cohort_minimum=10, coordinates=7).graph == "complete"
    assert protection.terms("round-1", cohort=101, cohort_minimum=10, coordinates=7).graph == "sparse"
    assert SecureSum(clip=1.0, mode="active").terms("r", cohort=101, cohort_minimum=10, coordinates=7).graph == "sparse"
    active = SecureSum(clip=1.0, mode="active", graph="complete")
    assert active.terms("round-1", cohort=200, cohort_minimum=10, coordinates=7).graph == "complete"
    with pytest.raises(ValueError, match="at most 1000"):
        protection.terms("round-1", cohort=1_001, cohort_minimum=10, coordinates=7)


def test_more_survivors_or_noise_cost_less_and_zero_noise_has_no_price() -> None:
    protection = SecureSum(clip=0.1, sigma=4_900)
    assert protection.epsilon(60, 262) == pytest.approx(1.618, abs=1e-3)
    assert protection.epsilon(10, 262) == pytest.approx(4.325, abs=1e-3)
    assert SecureSum(clip=0.1, sigma=9_800).rho(10, 262) == pytest.approx(protection.rho(10, 262) / 4)
    with pytest.raises(ValueError, match="without noise"):
        SecureSum(clip=0.1).rho(10, 262)


def test_round_manifest_has_terms_exactly_when_its_protection_is_a_secure_sum() -> None:
    protection = SecureSum(clip=0.1)
    terms = protection.terms("round-1", cohort=5, cohort_minimum=3, coordinates=7)
    manifest = RoundManifest.model_validate(GIVEN | {"protection": protection, "terms": terms})
    assert RoundManifest.model_validate_json(manifest.model_dump_json()) == manifest
    laplace = {"kind": "local_laplace", "clip": 0.1, "scale": 0.01}
    other = protection.terms("round-2", cohort=5, cohort_minimum=3, coordinates=7)
    for wrong in (
        {"protection": protection},
        {"protection": laplace, "terms": terms},
        {"protection": protection, "terms": other},
    ):
        with pytest.raises(ValidationError, match="terms"):
            RoundManifest.model_validate(GIVEN | wrong)
