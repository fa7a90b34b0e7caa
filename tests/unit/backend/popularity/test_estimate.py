"""The estimator of popularity. Oracles: planted rates, the prior, and the result of cutting off negative counts."""

from __future__ import annotations

import numpy as np
import pytest

from backend.federation.systems import COMPOSED
from backend.popularity.estimate import NoisyCounts, exposure, log_lifts, usual_rates
from models.metrics import auc
from protocol.protections import SecureSum


def planted_counts(
    rates: np.ndarray, shown: np.ndarray, noise: float, seed: int = 0, displays_noise: float | None = None
) -> NoisyCounts:
    """Return counts of articles with these rates and displays, and Gaussian noise of this deviation on the clicks."""
    rng = np.random.default_rng(seed)
    wide = noise * 4 if displays_noise is None else displays_noise
    return NoisyCounts(
        rng.binomial(shown, rates) + rng.normal(0, noise, len(rates)),
        shown + rng.normal(0, wide, len(rates)),
        np.full(len(rates), noise**2),
        np.full(len(rates), wide**2),
    )


def test_counts_of_zero_give_zero_lifts() -> None:
    zeros = np.zeros(5)
    assert log_lifts(NoisyCounts(zeros, zeros, zeros, zeros)).tolist() == [0.0] * 5
    assert log_lifts(NoisyCounts(*[np.zeros(0)] * 4)).shape == (0,)
    asked = np.zeros(5, dtype=bool)
    assert log_lifts(NoisyCounts(zeros, zeros, zeros, zeros), asked=asked).tolist() == [0.0] * 5


def test_noiseless_counts_give_the_log_of_the_rates() -> None:
    rates = np.repeat([0.05, 0.1, 0.2], 100)
    lifts = log_lifts(planted_counts(rates, np.full(300, 20_000), 1e-9))
    groups = lifts.reshape(3, 100)
    np.testing.assert_allclose(np.diff(groups.mean(axis=1)), np.log(2), atol=0.05)
    assert groups.std(axis=1).max() < 0.07, "half a step of the grid, and the counts' own chance"


def test_more_noise_gives_smaller_lifts() -> None:
    rates = np.exp(np.random.default_rng(1).normal(np.log(0.1), 0.8, 400)).clip(0.005, 0.6)
    spreads = [float(np.std(log_lifts(planted_counts(rates, np.full(400, 300), noise)))) for noise in (2, 40, 100, 400)]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[0] > 0.6
    assert spreads[-1] < 0.05


def test_noise_alone_does_not_make_a_story_popular() -> None:
    """Half the articles are never clicked, half at the usual rate; the noise hides the difference of single ones."""
    shown = np.full(2_000, 60)
    rates = np.where(np.arange(2_000) % 2, 0.1, 1e-9)
    counted = planted_counts(rates, shown, noise=12.0, displays_noise=1.0)
    lifts = log_lifts(counted)
    assert np.abs(lifts).max() < 1.0
    clipped = np.log((np.maximum(counted.clicks, 0) + 1) / (shown + 10))
    assert clipped.max() - np.median(clipped) > 2.0, "the naive estimate finds news that are ten times as popular"
    # On average the order is right, and negative counts are part of why: the mean of the unclicked is lower.
    assert lifts[rates > 0.05].mean() > lifts[rates < 0.05].mean()


def test_display_counts_are_shrunk_without_biasing_their_sum() -> None:
    true = np.random.default_rng(2).gamma(2.0, 40.0, 5_000)
    counted = NoisyCounts(
        np.zeros(5_000),
        true + np.random.default_rng(3).normal(0, 30, 5_000),
        np.zeros(5_000),
        np.full(5_000, 900.0),
    )
    shown = exposure(counted)
    assert shown.displays.mean() == pytest.approx(counted.displays.mean(), rel=0.01)
    assert np.square(shown.displays - true).mean() < 0.8 * 900
    assert (shown.variance < 900).all()


def test_fresh_articles_of_a_popular_topic_start_higher() -> None:
    rates = np.concatenate([np.full(100, 0.3), np.full(100, 0.05)])
    counted = planted_counts(rates, np.full(200, 200), 3.0)
    topics = np.repeat([0, 1], 100)
    asked = np.ones(200, dtype=bool)
    asked[[0, 100]] = False  # too fresh to be on the list
    lifts = log_lifts(counted, topics, asked=asked)
    assert lifts[0] > 0.2
    assert lifts[100] < -0.2
    # A topic that nobody was asked about has no lift.
    new_topic = np.append(topics[:-1], 2)
    unasked = np.append(asked[:-1], False)
    assert log_lifts(counted, new_topic, asked=unasked)[-1] == 0.0


@pytest.mark.parametrize(
    ("system", "devices", "least"),
    [("private_counts/secure/huber", 60, 0.54), ("private_counts/secure_large/mean", 1_000, 0.8)],
)
def test_private_counts_predict_the_next_clicks(system: str, devices: int, least: float) -> None:
    """Planted rates; each device displays thirty of 100 articles, and the noise of a system's shares is in the sum."""
    protection = COMPOSED[system].protection
    assert isinstance(protection, SecureSum)
    rng = np.random.default_rng(4)
    rates = np.exp(rng.normal(np.log(0.1), 0.9, 100)).clip(0.005, 0.6)
    shown = rng.multinomial(30 * devices, np.full(100, 1 / 100))
    noise = protection.sigma * 2.0**-protection.fraction_bits * np.sqrt(devices)
    found = []
    for seed in range(20):
        lifts = log_lifts(planted_counts(rates, shown, noise, seed, displays_noise=noise * 16 / 3))
        found.append(auc((rates > np.median(rates)).astype(int), lifts))
    assert np.mean(found) > least
    assert protection.epsilon(devices, 200) < 2.0


def test_usual_rate_and_spread_are_estimated_from_the_counts() -> None:
    rates = np.exp(np.random.default_rng(5).normal(np.log(0.2), 0.3, 500)).clip(0, 1)
    usual = usual_rates(counted := planted_counts(rates, np.full(500, 400), 2.0), exposure(counted))
    assert usual.rate == pytest.approx(0.2, rel=0.3)
    assert usual.spread == 0.3


def test_invalid_counts_are_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="alike"):
        NoisyCounts(np.zeros(2), np.zeros(3), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="finite"):
        NoisyCounts(np.array([np.nan]), np.zeros(1), np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="not be negative"):
        NoisyCounts(np.zeros(1), np.zeros(1), -np.ones(1), np.zeros(1))
