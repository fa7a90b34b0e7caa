"""The noise in an opened count has the distribution from which its cost is computed.

Each test fails a correct program with probability below one in a million.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from backend.federation.protections.registry import resolve
from backend.federation.strategies.counting import Counting
from backend.federation.systems import COMPOSED
from device_app.privacy.noise_sources import SystemNoise
from device_app.privacy.private_parameters import shared_part
from device_app.privacy.protections.secure_sum import clip_norm, contribute
from device_app.training.tasks.counting import count_vector
from protocol.popularity import CLICKED, DISPLAYED
from protocol.protections import SecureSum
from protocol.ring import ring_dtype

FALSE_ALARM = 1e-6
DEVICES, NEWS = 20, 2_000
LISTED = Counting().listed(tuple(f"n{row}" for row in range(NEWS)))


def protection_of(name: str) -> SecureSum:
    protection = COMPOSED[name].protection
    assert isinstance(protection, SecureSum)
    return protection


def opened(protection: SecureSum) -> dict[str, NDArray[np.float64]]:
    """Return the noise in the sum of twenty devices: the opened sum minus their contributions."""
    terms = protection.terms("round-1", cohort=DEVICES, cohort_minimum=DEVICES, coordinates=2 * NEWS)
    total = np.zeros(terms.length, dtype=ring_dtype(terms.bits))
    tensors = count_vector(LISTED, {"n1", "n2"}, {"n2"}, np.random.default_rng(0))
    for _ in range(DEVICES):
        clipped = clip_norm(shared_part(tensors, None), protection.clip)
        total += contribute(clipped, 1, protection, terms, SystemNoise()).vector
    sums = protection.layout({DISPLAYED: (NEWS,), CLICKED: (NEWS,)}, terms).sums(total)
    assert sums.samples == DEVICES
    return {name: sums.tensors[name] - DEVICES * tensors[name] for name in (DISPLAYED, CLICKED)}


@pytest.mark.parametrize("name", ["private_counts/secure/huber", "private_counts/secure_large/mean"])
def test_noise_on_each_count_is_the_sum_of_survivors_shares(name: str) -> None:
    protection = protection_of(name)
    noise = opened(protection)
    both = np.concatenate([noise[DISPLAYED], noise[CLICKED]]) * 2**protection.fraction_bits
    assert (both == np.rint(both)).all(), "whole steps"
    variance = resolve(protection).noise_variance(DEVICES) * 4.0**protection.fraction_bits
    assert variance == pytest.approx(DEVICES * protection.sigma**2)
    # Sum of squares of n Gaussians over their variance: chi-square with n degrees of freedom.
    statistic = float(np.square(both).sum() / variance)
    assert min(stats.chi2.cdf(statistic, len(both)), stats.chi2.sf(statistic, len(both))) > FALSE_ALARM
    fewer = float(np.square(both).sum() / (variance * (DEVICES - 4) / DEVICES))
    assert stats.chi2.sf(fewer, len(both)) < 0.05, "the test must be able to notice four devices without noise"
    assert stats.kstest(both, stats.norm(scale=np.sqrt(variance)).cdf).pvalue > FALSE_ALARM
    assert abs(float(np.corrcoef(noise[DISPLAYED], noise[CLICKED])[0, 1])) < 5 / np.sqrt(NEWS)


def test_without_noise_the_sum_is_exact() -> None:
    noise = opened(protection_of("private_counts/exact/mean"))
    assert not noise[DISPLAYED].any()
    assert not noise[CLICKED].any()


def test_stated_epsilon_of_a_count_matches_the_gaussian_mechanism() -> None:
    """Oracle: rho = D^2 / 2 s^2 of the Gaussian mechanism; D: the largest distance of two readers' contributions."""
    protection = protection_of("private_counts/secure/huber")
    farthest = np.sqrt(2) * LISTED.norm
    for survivors in (10, 60, 500):
        deviation = np.sqrt(resolve(protection).noise_variance(survivors))
        assert protection.rho(survivors, 2 * NEWS) == pytest.approx(farthest**2 / (2 * deviation**2), rel=1e-6)
    assert protection.epsilon(60, 2 * NEWS) < 2.0
    assert protection.epsilon(10, 2 * NEWS) < 5.5
