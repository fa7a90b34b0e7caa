"""Report mechanisms on a synthetic world: 16 groups of articles, and readers of one or of two groups.

Oracles: the product's randomised response, drawn many times, and the groups that are known.
"""

from __future__ import annotations

import numpy as np
import pytest

from device_app.privacy.mechanisms.code import RandomisedCode
from device_app.privacy.noise_sources import SeededNoise
from experiments.recall.measure import HeldOut, WarmSplit
from experiments.recall.modes import EmbeddedSplit, Mixtures
from experiments.recall.report_worth import MECHANISMS, Readers, compared, randomised, several_lists
from tests.doubles.long_form import by_length

NEWS, DIM, K = 1_600, 48, 16


@pytest.fixture(scope="module")
def readers() -> Readers:
    """40 measured readers; those of odd number read a second group a quarter of the time."""
    draw = np.random.default_rng(3)
    group = np.arange(NEWS) % K
    apart = np.linalg.qr(draw.normal(size=(DIM, K)))[0].T  # orthogonal, so that clusters are told apart
    news = apart[group] + 0.05 * draw.normal(size=(NEWS, DIM))
    news = (news / np.linalg.norm(news, axis=1, keepdims=True)).astype(np.float32)

    def clicks(first: int, second: int) -> np.ndarray:
        own = draw.choice(np.flatnonzero(group == first), size=12, replace=False)
        own[:3] = draw.choice(np.flatnonzero(group == second), size=3, replace=False)
        return own

    known = [clicks(at % K, (at + at % 2) % K) for at in range(200)]
    measured = HeldOut(tuple(each[:10] for each in known[:40]), tuple(np.sort(each[10:]) for each in known[:40]))
    split = WarmSplit(tuple(known[40:]), measured, NEWS)
    return Readers(EmbeddedSplit(split, news, split.recent_clicks()), news)


@pytest.mark.long_form
def test_numbers_sent_have_the_probabilities_of_the_devices_mechanism() -> None:
    mechanism, noise = RandomisedCode(K, 2.0), SeededNoise(5)
    true = np.array([0.5, 0.5] + [0.0] * 14)
    draws = by_length(5_000, long=20_000)
    sent = [mechanism.release(at % 2, noise) for at in range(draws)]
    # each share's standard deviation is at most .0071, or .0035 in the long form: five fail once in a million runs
    np.testing.assert_allclose(
        np.bincount(sent, minlength=K) / len(sent), randomised(true[None], 2.0)[0], atol=2.5 / np.sqrt(draws)
    )


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_largest_weight_report_matches_the_frontiers_code_report(readers: Readers, epsilon: float) -> None:
    mine = MECHANISMS["largest weight (`interest`)"](readers, 2.0, epsilon)
    theirs = [Mixtures(readers.study, book, 2.0).code(epsilon) for book in readers.books]
    np.testing.assert_array_equal(mine.lists, np.concatenate([each.lists for each in theirs]))
    np.testing.assert_allclose(mine.chance, np.concatenate([each.chance for each in theirs], axis=1) / len(theirs))


def test_cluster_weights_match_the_shares_of_clicks_of_both_groups(readers: Readers) -> None:
    shares = np.sort(readers.clusters(readers.books[0]), axis=1)[:, ::-1]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.median(shares[0::2, 0]) == 1
    assert np.median(shares[1::2, 0]) == pytest.approx(0.7), "3 of 10 clicks are of the second group"


def test_several_lists_find_the_nearest_group_more_often_than_one_list(readers: Readers) -> None:
    one, several = (
        mechanism(readers, 30.0, 1.0) for mechanism in (MECHANISMS["largest weight (`interest`)"], several_lists)
    )
    own = [nearest_group(readers, answers) for answers in (one, several)]
    assert own[1] > own[0]


def nearest_group(readers: Readers, answers: object) -> float:
    """Return the probability that the list begins with an article of the reader's first group."""
    first = [int(np.bincount(rows % K).argmax()) for rows in readers.study.split.measured.histories]
    lists, choice, chance = (getattr(answers, name) for name in ("lists", "choice", "chance"))
    right = lists[choice][:, :, 0] % K == np.array(first)[:, None]
    return float((chance * right).sum(axis=1).mean())


def test_every_mechanism_has_a_row_at_every_epsilon(readers: Readers) -> None:
    table = compared("1,600", readers, readers, (1.0, 8.0))
    names = [(row[0], row[1]) for row in table.rows]
    assert {(name, epsilon) for name in MECHANISMS for epsilon in ("1", "8")} <= set(names)
    assert table.rows[0][3] == "+0.0 (+0.0 .. +0.0)", "the popular list beside itself"
