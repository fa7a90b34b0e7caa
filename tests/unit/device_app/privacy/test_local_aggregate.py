"""Views of one device: FL-MV-DSSM's eq. 7 by hand, the noise's distribution, and its figures against dp-accounting."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from device_app.privacy.local_aggregate import (
    ClippedGradient,
    NoisyGradient,
    ViewProtection,
    clip_l2,
    exact_epsilon,
    gaussian,
    l2_norm,
    local_secure_aggregate,
    mean_of,
    renyi_epsilon,
)
from device_app.privacy.noise_sources import SeededNoise

DELTA = 1e-3


def test_clipping_and_noise_free_mean_match_the_golden_values() -> None:
    first, second = clip_l2({"g.w": np.array([0.6, 0.8])}, 0.5), clip_l2({"g.w": np.array([0.3, 0.0])}, 0.5)
    assert first.tensors["g.w"] == pytest.approx([0.3, 0.4])
    assert second.tensors["g.w"].tolist() == [0.3, 0.0]
    assert mean_of([first.tensors, second.tensors])["g.w"] == pytest.approx([0.3, 0.2])


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6), st.floats(1e-3, 1e3))
def test_clipped_gradient_keeps_its_direction_within_the_bound(seed: int, size: float, bound: float) -> None:
    draw = np.random.default_rng(seed)
    gradient = {"g.a": size * draw.normal(size=(3, 2)), "g.b": size * draw.normal(size=4)}
    clipped = clip_l2(gradient, bound)
    assert l2_norm(clipped.tensors) <= bound
    shrink = min(1.0, bound / l2_norm(gradient))
    for name, each in gradient.items():
        assert clipped.tensors[name] == pytest.approx(shrink * each, rel=1e-12)


def test_clipping_norm_is_taken_over_all_tensors() -> None:
    clipped = clip_l2({"g.a": np.array([3.0]), "g.b": np.array([4.0])}, 1.0)
    assert (clipped.tensors["g.a"][0], clipped.tensors["g.b"][0]) == pytest.approx((0.6, 0.8))


def test_mean_of_n_noisy_views_has_sigma_c_over_root_n() -> None:
    mechanism = ViewProtection(clip=0.5, sigma=2.0)
    source = SeededNoise(1)
    gradient = {"g.w": np.full(200_000, 1e-4)}
    views = [mechanism.noisy(mechanism.bounded(gradient), source) for _ in range(4)]
    assert abs(np.corrcoef(views[0].tensors["g.w"], views[1].tensors["g.w"])[0, 1]) < 0.01
    for view in views:
        assert view.tensors["g.w"].std() == pytest.approx(1.0, rel=0.01)
    mean = local_secure_aggregate(views)["g.w"]
    assert mean.std() == pytest.approx(1.0 / 2, rel=0.01)
    assert np.allclose(mean, np.mean([view.tensors["g.w"] for view in views], axis=0), atol=1e-12)


def test_draws_pass_a_kolmogorov_smirnov_test_for_the_normal_distribution() -> None:
    drawn = gaussian(SeededNoise(7), 3.0, (1_000, 100))
    assert drawn.shape == (1_000, 100)
    assert kstest(drawn.ravel(), "norm", args=(0, 3.0)).pvalue > 1e-3  # a right law fails once in 1,000 seeds


class _Edges:
    """Bits all zero, then all one."""

    def uniform_bits(self, n: int) -> bytes:
        return bytes(n // 2) + b"\xff" * (n // 2)


def test_extreme_random_bits_give_finite_draws() -> None:
    far, near = gaussian(_Edges(), 1.0, (2,))
    assert far == pytest.approx(8.29, abs=0.01)
    assert near == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("sigma", "rounds", "exact", "renyi"), [(4, 100, 10.20, 12.42), (1, 100, 80.0, 87.2), (1, 11, 15.0, 17.8)]
)
def test_epsilons_of_section_6_3_match_dp_accounting(sigma: float, rounds: int, exact: float, renyi: float) -> None:
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), rounds)
    loss = pld.PLDAccountant(value_discretization_interval=1e-3)
    loss.compose(event)
    assert exact_epsilon(sigma, rounds, DELTA) == pytest.approx(loss.get_epsilon(DELTA), rel=1e-6)
    assert ViewProtection(0.5, sigma).epsilon(rounds, DELTA) == pytest.approx(exact, abs=0.05)
    orders = 1 + np.arange(1, 4_000) / 1_000
    moments = [rdp.compute_epsilon([a], [a * rounds / (2 * sigma**2)], DELTA)[0] for a in (2.0, 3.0)]
    assert loss.get_epsilon(DELTA) < min(moments), "any Renyi bound lies above the exact figure"
    least = min(a * rounds / (2 * sigma**2) + math.log(1 / DELTA) / (a - 1) for a in orders)
    assert renyi_epsilon(sigma, rounds, DELTA) == pytest.approx(least, rel=1e-5)
    assert renyi_epsilon(sigma, rounds, DELTA) == pytest.approx(renyi, abs=0.05)


def test_papers_epsilon_4_33_uses_the_wrong_logarithm_and_is_too_small() -> None:
    assert math.sqrt(100 * math.log10(1 / DELTA)) / 4 == pytest.approx(4.33, abs=0.005)
    assert math.sqrt(100 * math.log(1 / DELTA)) / 4 == pytest.approx(6.57, abs=0.005)
    assert exact_epsilon(4, 100, DELTA) > 10.2


@settings(max_examples=50, deadline=None)
@given(st.floats(0.3, 50), st.integers(1, 500), st.floats(1e-9, 0.1))
def test_epsilon_does_not_fall_with_more_rounds_or_less_noise_or_less_delta(
    sigma: float, rounds: int, delta: float
) -> None:
    base = exact_epsilon(sigma, rounds, delta)
    assert exact_epsilon(sigma, rounds + 1, delta) >= base
    assert exact_epsilon(sigma * 0.9, rounds, delta) >= base
    assert exact_epsilon(sigma, rounds, delta / 2) >= base
    assert base <= renyi_epsilon(sigma, rounds, delta)


def test_invalid_input_is_named_in_the_error() -> None:
    mechanism = ViewProtection(0.5, 1.0)
    with pytest.raises(ValueError, match=r"tensor g\.w: has values that are not finite"):
        mechanism.bounded({"g.w": np.array([1.0, np.nan])})
    with pytest.raises(ValueError, match="norm is not finite"), np.errstate(over="ignore"):
        mechanism.bounded({"g.w": np.full(4, 1.7e308)})
    with pytest.raises(ValueError, match=r"norm 5\.0, beyond 1\.0"):
        ClippedGradient({"g.w": np.array([3.0, 4.0])}, 1.0)
    with pytest.raises(ValueError, match=r"clipped at 0\.6, the limit is 0\.5"):
        mechanism.noisy(clip_l2({"g.w": np.ones(2)}, 0.6), SeededNoise(1))
    with pytest.raises(ValueError, match="at least one tensor"):
        mechanism.bounded({})
    with pytest.raises(ValueError, match="sigma must be positive"):
        ViewProtection(0.5, 0.0)
    with pytest.raises(ValueError, match="at least one gradient"):
        local_secure_aggregate([])
    one, two = NoisyGradient({"g.a": np.ones(2)}), NoisyGradient({"g.a": np.ones(3)})
    with pytest.raises(ValueError, match=r"tensor g\.a: shapes \(2,\) and \(3,\)"):
        local_secure_aggregate([one, two])
    with pytest.raises(ValueError, match=r"tensor g\.b: not in every view"):
        local_secure_aggregate([one, NoisyGradient({"g.a": np.ones(2), "g.b": np.ones(2)})])
    for arguments, words in (((0.0, 1, 0.1), "sigma"), ((1.0, 0, 0.1), "rounds"), ((1.0, 1, 1.0), "delta")):
        with pytest.raises(ValueError, match=words):
            exact_epsilon(*arguments)
    with pytest.raises(ValueError, match="beyond 1e\\+06"):
        exact_epsilon(1e-4, 100, 1e-3)
