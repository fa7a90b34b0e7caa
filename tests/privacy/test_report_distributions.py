"""The distributions of the reports.

Oracles: the closed forms, OpenDP's mechanisms, scipy's tests. Every randomised test fails a correct implementation with
probability below 10^-7 (FALSE_ALARM).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from device_app.privacy.exact_samplers import (
    bernoulli_exp,
    discrete_laplace,
    randomised_response,
    rational,
    subset_selection,
    uniform_below,
    uniform_subsets,
)
from device_app.privacy.mechanisms.basis_l1 import BasisL1
from device_app.privacy.mechanisms.basis_laplace import BasisLaplace
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.mechanisms.subset import TopicSubset
from device_app.privacy.mechanisms.topics import NoisyTopics, histogram
from device_app.privacy.noise_sources import SystemNoise
from device_app.reports.modes import MODES
from experiments.recall.modes import PrivUnit, cap_share
from protocol.recall import onto_l1_ball

FALSE_ALARM = 1e-7
DRAWS = 1_000_000
NOISE = SystemNoise()


def fits(counts: np.ndarray, chances: np.ndarray) -> bool:
    """Return whether counts follow a distribution, by chi-square at FALSE_ALARM."""
    return float(stats.chisquare(counts, chances / chances.sum() * counts.sum()).pvalue) > FALSE_ALARM


def epsilon_seen(often: int, seldom: int, n: int) -> float:
    """Return the lower bound (Clopper-Pearson, FALSE_ALARM in all) on ln of the ratio of two events' probabilities."""
    surely_often = stats.beta.ppf(FALSE_ALARM / 2, often, n - often + 1)
    surely_seldom = stats.beta.isf(FALSE_ALARM / 2, seldom + 1, n - seldom)
    return float(np.log(surely_often / surely_seldom))


@pytest.fixture(scope="module")
def codes() -> np.ndarray:
    """A million reports of code 3 at K = 16, epsilon 4."""
    return randomised_response(NOISE, np.full(DRAWS, 3, dtype=np.int64), 16, 4.0)


def distribution_of_codes(true: int, size: int, epsilon: float) -> np.ndarray:
    protection = np.ones(size)
    protection[true] = math.exp(epsilon)
    return protection


def test_million_codes_follow_randomised_response(codes: np.ndarray) -> None:
    counts = np.bincount(codes, minlength=16)
    assert fits(counts, distribution_of_codes(3, 16, 4.0))
    assert not fits(counts, distribution_of_codes(3, 16, 4.05)), "the test would notice a slightly other epsilon"
    assert counts[3] / DRAWS == pytest.approx(0.7845, abs=0.003)  # e^4 / (e^4 + 15)
    assert RandomisedCode(16, 4.0).truth == pytest.approx(0.7845, abs=5e-5)


def test_codes_of_a_wide_codebook_match_their_distribution() -> None:
    drawn = randomised_response(NOISE, np.full(100_000, 63, dtype=np.int64), 64, 8.0)
    expected = distribution_of_codes(63, 64, 8.0)
    lumped = np.array([(drawn != 63).sum(), (drawn == 63).sum()])
    assert fits(lumped, np.array([63.0, expected[63]]))
    wrong = drawn[drawn != 63]
    assert fits(np.bincount(wrong // 8, minlength=8), np.array([8.0] * 7 + [7.0]))


def test_observed_epsilon_of_codes_is_within_its_bound(codes: np.ndarray) -> None:
    # Told apart are readers 3 and 8 by the event "3 was sent"; every symmetric pair is the same by relabelling.
    other = randomised_response(NOISE, np.full(DRAWS, 8, dtype=np.int64), 16, 4.0)
    bounds = [epsilon_seen(int((codes == 3).sum()), int((other == 3).sum()), DRAWS)]
    bounds += [epsilon_seen(int((other == 8).sum()), int((codes == 8).sum()), DRAWS)]
    assert max(bounds) <= 4.0
    assert max(bounds) > 3.9


def test_check_detects_an_understated_epsilon(codes: np.ndarray) -> None:
    honest = randomised_response(NOISE, np.full(200_000, 8, dtype=np.int64), 16, 4.0)
    claimed = 3.5
    assert epsilon_seen(int((codes[:200_000] == 3).sum()), int((honest == 3).sum()), 200_000) > claimed


def test_probability_ratio_is_exactly_e_to_the_epsilon() -> None:
    # By the sampler's construction the odds of true to any other are 1 to exp(-eps), eps the rational it uses.
    for epsilon in (4.0, 8.0, 0.1, 1 / 3, 2.7):
        exact = rational(epsilon)
        assert exact <= Fraction(epsilon)
        assert float(Fraction(epsilon) - exact) < 2.0**-20
    assert rational(4.0) == 4
    mechanism = RandomisedCode(16, 4.0)
    others = (1 - mechanism.truth) / 15
    assert mechanism.truth / others == pytest.approx(math.exp(4.0), rel=1e-12)


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 3), (7, 5), (4, 1), (5, 1 << 20)])
def test_exponential_bernoulli_draws_are_exact(numerator: int, denominator: int) -> None:
    coins = bernoulli_exp(NOISE, np.full(300_000, numerator, dtype=np.int64), denominator)
    chance = math.exp(-numerator / denominator)
    assert stats.binomtest(int(coins.sum()), coins.size, chance).pvalue > FALSE_ALARM


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 12_345])
def test_bounded_random_integers_are_uniform(bound: int) -> None:
    drawn = uniform_below(NOISE, bound, 300_000)
    assert drawn.min() >= 0
    assert drawn.max() < bound
    bins = min(bound, 100)
    edges = np.arange(bins + 1) * bound // bins
    counts, _ = np.histogram(drawn, bins=edges)
    assert bound == 1 or fits(counts, np.diff(edges).astype(float))


def test_random_word_beyond_the_last_multiple_of_the_bound_is_rejected() -> None:
    class ScriptedWords:
        """Returns the greatest word first, which is beyond every multiple of 3, then a 7."""

        def __init__(self) -> None:
            self.asked = 0

        def uniform_bits(self, n: int) -> bytes:
            self.asked += 1
            return b"\xff" * n if self.asked == 1 else (7).to_bytes(8, "little") * (n // 8)

    assert 2**64 % 3 == 1, "so the greatest word is the one left over"
    assert uniform_below(ScriptedWords(), 3, 2).tolist() == [1, 1]


def test_million_discrete_laplace_draws_match_the_distribution() -> None:
    scale = 5
    drawn = discrete_laplace(NOISE, scale, DRAWS)
    values = np.arange(-60, 61)
    protection = np.exp(-np.abs(values) / scale)
    counts = np.array([(drawn == value).sum() for value in values])
    assert counts.sum() > DRAWS * (1 - 3 * math.exp(-60 / scale))
    assert fits(counts, protection)
    assert not fits(counts, np.exp(-np.abs(values) / (scale * 1.02)))


def test_discrete_laplace_has_the_spread_of_the_continuous_one() -> None:
    drawn = discrete_laplace(NOISE, 78_644, 300_000) / 78_644
    assert float(stats.kstest(drawn, "laplace").pvalue) > FALSE_ALARM


def test_observed_epsilon_of_discrete_laplace_is_within_its_bound() -> None:
    # Sensitivity 4 at scale 2: epsilon 2, seen best by "at least the upper value".
    low, high = discrete_laplace(NOISE, 2, DRAWS), 4 + discrete_laplace(NOISE, 2, DRAWS)
    seen = max(epsilon_seen(int((high >= t).sum()), int((low >= t).sum()), DRAWS) for t in range(6))
    assert 1.9 < seen <= 2.0


def test_codes_and_noise_agree_with_opendps() -> None:
    dp.enable_features("contrib")
    draws = 20_000
    truth = RandomisedCode(16, 4.0).truth
    other = dp.m.make_randomized_response(list(range(16)), truth)
    assert other.map(1) == pytest.approx(4.0, abs=1e-6)
    theirs = np.bincount([other(3) for _ in range(draws)], minlength=16)
    ours = np.bincount(randomised_response(NOISE, np.full(draws, 3, np.int64), 16, 4.0), minlength=16)
    assert stats.chi2_contingency(np.array([ours, theirs])).pvalue > FALSE_ALARM
    laplace = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i32")), dp.l1_distance(T="i32"), scale=5.0)
    assert laplace.map(4) == pytest.approx(4 / 5)
    drawn = np.array(laplace([0] * draws))
    bins = np.arange(-20.5, 21)
    table = [np.histogram(np.clip(one, -20, 20), bins)[0] for one in (drawn, discrete_laplace(NOISE, 5, draws))]
    assert stats.chi2_contingency(np.array(table)).pvalue > FALSE_ALARM


def test_subsets_are_uniform_and_selection_is_biased_by_epsilon() -> None:
    sets = uniform_subsets(NOISE, 5, 2, 200_000)
    assert (sets[:, 0] < sets[:, 1]).all()
    counts = np.bincount(sets[:, 0] * 5 + sets[:, 1], minlength=25).reshape(5, 5)[np.triu_indices(5, 1)]
    assert fits(counts, np.ones(10))
    tilted = subset_selection(NOISE, np.full(200_000, 1, dtype=np.int64), 5, 2, 1.0)
    counts = np.bincount(tilted[:, 0] * 5 + tilted[:, 1], minlength=25).reshape(5, 5)[np.triu_indices(5, 1)]
    holds = np.array([1 in pair for pair in zip(*np.triu_indices(5, 1), strict=True)])
    assert fits(counts, np.where(holds, math.e, 1.0))
    assert TopicSubset(16, 1.0).width == 4
    assert TopicSubset(16, 4.0).width == 1
    assert TopicSubset(16, 4.0).truth == pytest.approx(RandomisedCode(16, 4.0).truth)


def test_noisy_histogram_is_the_histogram_plus_scaled_noise() -> None:
    mechanism = NoisyTopics(16, 4.0)
    shares = np.full(16, 1 / 16)
    sent = mechanism.release(np.tile(shares, (20_000, 1)), NOISE)
    assert float(stats.kstest((sent - shares).ravel() / 0.5, "laplace").pvalue) > FALSE_ALARM  # 2 / eps
    assert (sent * 2**16 % 1 == 0).all()


def test_observed_epsilon_of_a_histogram_is_within_its_bound() -> None:
    # The readers furthest apart: all clicks on topic 0, or all on topic 1.
    mechanism, n = NoisyTopics(2, 2.0), 400_000
    one = mechanism.release(np.tile([1.0, 0.0], (n, 1)), NOISE)
    two = mechanism.release(np.tile([0.0, 1.0], (n, 1)), NOISE)
    seen = epsilon_seen(
        int(((one[:, 0] >= 1) & (one[:, 1] <= 0)).sum()), int(((two[:, 0] >= 1) & (two[:, 1] <= 0)).sum()), n
    )
    assert 1.75 < seen <= 2.0


def test_directions_fall_in_the_cap_with_the_stated_probability() -> None:
    mechanism, n = PrivUnit(4.0), 300_000
    user = np.zeros((n, 8))
    user[:, 2] = 3.0
    sent = mechanism.release(user, NOISE)
    cosine = sent[:, 2]
    np.testing.assert_allclose(np.linalg.norm(sent, axis=1), 1.0, atol=1e-5)
    inside = int((cosine >= mechanism.cap_edge).sum())
    assert stats.binomtest(inside, n, mechanism.cap_chance).pvalue > FALSE_ALARM
    assert cosine.mean() == pytest.approx(mechanism.mean_cosine, abs=0.01)
    sphere = stats.beta(3.5, 3.5, loc=-1, scale=2)  # the law of one coordinate on the sphere of R^8
    within = (sphere.cdf(cosine[cosine >= mechanism.cap_edge]) - (1 - mechanism.cap_share)) / mechanism.cap_share
    assert float(stats.kstest(within, "uniform").pvalue) > FALSE_ALARM
    assert stats.ttest_1samp(sent[:, 5], 0).pvalue > FALSE_ALARM


def test_log_densities_of_a_direction_differ_by_exactly_epsilon() -> None:
    for epsilon in (0.5, 1.0, 4.0, 8.0):
        mechanism = PrivUnit(epsilon)
        p, q = mechanism.cap_chance, mechanism.cap_share
        assert math.log(p / q * (1 - q) / (1 - p)) == pytest.approx(epsilon, rel=1e-9)
        assert cap_share(0.0, 8) == pytest.approx(0.5)
    assert PrivUnit(8.0).mean_cosine > PrivUnit(4.0).mean_cosine > PrivUnit(1.0).mean_cosine


def test_observed_epsilon_of_directions_is_within_its_bound() -> None:
    # Opposite readers; the event is the one's cap.
    mechanism, n = PrivUnit(2.0), 400_000
    user = np.zeros((n, 8))
    user[:, 0] = 1.0
    ours, theirs = mechanism.release(user, NOISE)[:, 0], mechanism.release(-user, NOISE)[:, 0]
    edge = mechanism.cap_edge
    seen = epsilon_seen(int((ours >= edge).sum()), int((theirs >= edge).sum()), n)
    assert 1.85 < seen <= 2.0


def test_vectors_are_projected_onto_the_l1_ball() -> None:
    np.testing.assert_allclose(onto_l1_ball(np.array([3.0, -1.0, 0.5]), 2.0), [2.0, 0.0, 0.0])
    np.testing.assert_allclose(onto_l1_ball(np.array([0.5, -0.5]), 2.0), [0.5, -0.5])
    np.testing.assert_allclose(onto_l1_ball(np.array([1.0, -1.0]), 1.0), [0.5, -0.5])
    mechanism = BasisL1(0.2, 1.2, 30, 5)
    assert mechanism.epsilon_per_channel == pytest.approx(1 / 3)
    assert mechanism.epsilon_per_report == pytest.approx(5 / 3)
    scores = np.random.default_rng(1).normal(size=(3, 30))
    bounded = mechanism.projected(scores)
    assert bounded.shape == (5, 30)
    assert (np.abs(bounded).sum(axis=1) <= 0.2 + 1e-12).all()
    sent = mechanism.release(scores, NOISE)
    assert sent.shape == (5, 30), "five channels, whatever the reader has"
    assert (sent * 2**16 % 1 == 0).all()
    assert mechanism.release_shares(np.array([3, 4]), NOISE).size == 0
    shared = BasisL1(0.2, 1.2, 30, 5, share_scale=2.0)
    assert shared.release_shares(np.array([3, 4]), NOISE).shape == (5,)
    assert shared.epsilon_per_report == pytest.approx(5 / 3 + 1)


def test_observed_epsilon_of_a_channel_is_within_its_bound() -> None:
    # Channels of two scores, A = 1, lambda = 1: epsilon 2 for a whole channel; many channels stand for many readers.
    n = 60_000
    mechanism = BasisL1(1.0, 1.0, 2, n)
    one = mechanism.release(np.tile([9.0, 0.0], (n, 1)), NOISE)
    two = mechanism.release(np.tile([-9.0, 0.0], (n, 1)), NOISE)
    seen = epsilon_seen(int((one[:, 0] >= 1).sum()), int((two[:, 0] >= 1).sum()), n)
    assert 1.8 < seen <= 2.0


def test_code_is_the_nearest_prototype_and_the_histogram_holds_shares_of_clicks() -> None:
    prototypes = np.eye(3, dtype=np.float32)
    assert nearest(prototypes, np.array([0.1, 0.9, 0.2], dtype=np.float32)) == 1
    clicks = np.array([[1, 0, 0], [0.9, 0.1, 0], [0, 0, 1], [0, 0, 2]], dtype=np.float32)
    assert histogram(prototypes, clicks).tolist() == [0.5, 0.0, 0.5]
    with pytest.raises(ValueError, match="not finite"):
        nearest(prototypes, np.full(3, np.nan, dtype=np.float32))


def test_invalid_parameters_are_named_in_the_error() -> None:
    for make, words in (
        (lambda: RandomisedCode(1, 4.0), "size"),
        (lambda: RandomisedCode(16, 0.0), "epsilon"),
        (lambda: RandomisedCode(16, math.inf), "epsilon"),
        (lambda: RandomisedCode(16, 4.0).release(16, NOISE), "code"),
        (lambda: NoisyTopics(16, -1.0), "epsilon"),
        (lambda: NoisyTopics(2, 1.0).release(np.array([0.9, 0.9]), NOISE), "shares"),
        (lambda: TopicSubset(2, 1.0).release(2, NOISE), "topic"),
        (lambda: PrivUnit(0.0), "epsilon"),
        (lambda: PrivUnit(1.0).release(np.zeros(8), NOISE), "direction is zero"),
        (lambda: BasisL1(0.0, 1.2, 30, 5), "radius"),
        (lambda: discrete_laplace(NOISE, 0, 1), "scale"),
        (lambda: uniform_below(NOISE, 0, 1), "bound"),
    ):
        with pytest.raises(ValueError, match=words):
            make()


def test_label_of_every_mode_describes_in_one_sentence_what_is_sent() -> None:
    said = [
        MODES[name].label.sent(mechanism)
        for name, mechanism in (
            ("code", RandomisedCode(16, 4.0)),
            ("topics", NoisyTopics(16, 4.0)),
            ("subset", TopicSubset(16, 1.0)),
            ("basis_l1", BasisL1(0.2, 1.2, 30, 5)),
            ("basis_laplace", BasisLaplace(0.2, 1.2, 30, 5)),
        )
    ]
    assert "right 78 % of the time" in said[0]
    assert all(one.endswith(".") and 40 < len(one) < 320 for one in said)


def test_histogram_of_a_reader_without_vectors_is_the_first_topic() -> None:
    assert histogram(np.eye(3, dtype=np.float32), np.zeros((0, 3), np.float32)).tolist() == [1.0, 0.0, 0.0]
