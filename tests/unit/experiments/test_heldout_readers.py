"""Held-out readers who evaluate releases. Oracles: probabilities by hand, and rankers whose order is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from device_app.privacy.mechanisms.code import RandomisedCode
from device_app.ranking.ranker import FeatureContext
from experiments.bench import heldout_readers as under_test
from experiments.bench.heldout_readers import HeldoutReader, Marks, Pool, ServedRanking, heldout_readers, judge
from experiments.bench.quality import MeasuredRelease, curves, gain_interval
from tests.doubles.news import NOW, synthetic_pool

K = 4


class KnownOrder:
    """A ranker that scores by topic affinity alone, times a sign."""

    def __init__(self, sign: float) -> None:
        self.sign = sign

    def score(
        self, clicks: NDArray[np.float32], candidates: NDArray[np.float32], context_features: FeatureContext
    ) -> NDArray[np.float32]:
        mine = np.isin(context_features.topics, context_features.clicked_topics)
        return (self.sign * mine).astype(np.float32)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    monkeypatch.setattr(under_test, "MET", 100)
    drawn = synthetic_pool(240, dim=8)
    return Pool(tuple(drawn.cards), np.asarray(drawn.vectors, dtype=np.float32))


@pytest.fixture
def readers(pool: Pool) -> list[HeldoutReader]:
    return heldout_readers(pool, 12, NOW, np.random.default_rng(0))


def served_ranking(pool: Pool, sign: float, epsilon: float = 4.0) -> ServedRanking:
    rng = np.random.default_rng(1)
    lists = [rng.permutation(len(pool.cards))[:60] for _ in range(K)]
    prototypes = pool.vectors[:K]
    return ServedRanking(KnownOrder(sign), np.zeros(len(pool.cards)), prototypes, RandomisedCode(K, epsilon), lists)  # type: ignore[arg-type]


def test_heldout_reader_is_evaluated_only_on_articles_not_clicked_before(
    pool: Pool, readers: list[HeldoutReader]
) -> None:
    for reader in readers:
        clicked = {row for row in range(len(pool.cards)) if (pool.vectors[row] == reader.clicks).all(axis=1).any()}
        assert len(clicked) == under_test.CLICKS
        assert not clicked & set(reader.met.tolist())
        assert reader.later[sorted(clicked)].sum() == 0
        assert reader.later.sum() == pytest.approx(1)
        assert 0 < reader.opened.sum() < len(reader.met)


def test_same_seed_draws_the_same_heldout_readers(pool: Pool, readers: list[HeldoutReader]) -> None:
    again = heldout_readers(pool, 12, NOW, np.random.default_rng(0))
    for one, other in zip(readers, again, strict=True):
        np.testing.assert_array_equal(one.met, other.met)
        np.testing.assert_array_equal(one.opened, other.opened)


def test_ranker_knowing_the_topics_beats_its_opposite(pool: Pool, readers: list[HeldoutReader]) -> None:
    knows, mistakes = (
        judge(readers, pool, served_ranking(pool, 1.0), depth=20),
        judge(readers, pool, served_ranking(pool, -1.0), 20),
    )
    np.testing.assert_allclose(knows.auc + mistakes.auc, 1.0)
    assert knows.auc.mean() > 0.6
    assert knows.ranked.mean() > mistakes.ranked.mean()
    np.testing.assert_allclose(knows.answered, mistakes.answered)


def test_share_of_found_stories_is_the_expectation_over_randomised_response(
    pool: Pool, readers: list[HeldoutReader]
) -> None:
    """By hand: the reader's own list with the probability of a true code, the others with equal ones."""
    given = served_ranking(pool, 1.0)
    found = judge(readers, pool, given, depth=20)
    for reader, share in zip(readers, found.answered, strict=True):
        vector = reader.clicks.mean(axis=0)
        true = int(np.argmax(given.prototypes @ vector))
        each = [reader.later[rows[:20]].sum() for rows in given.lists]
        other = (1 - given.mechanism.truth) / (K - 1)
        expected = given.mechanism.truth * each[true] + other * (sum(each) - each[true])
        assert share == pytest.approx(expected)


def test_share_found_in_a_whole_list_does_not_depend_on_its_order(pool: Pool, readers: list[HeldoutReader]) -> None:
    found = judge(readers, pool, served_ranking(pool, 1.0), depth=60)
    np.testing.assert_allclose(found.ranked, found.answered)


def test_ranker_gets_the_popularity_known_at_the_impression(pool: Pool, readers: list[HeldoutReader]) -> None:
    class PopularityPages:
        def score(self, clicks: object, candidates: object, context_features: FeatureContext) -> NDArray[np.float32]:
            return context_features.popularity.astype(np.float32)

    reader = readers[0]
    reported = np.zeros(len(pool.cards))
    reported[reader.met[reader.opened == 1]] = 0.5
    found = judge([reader], pool, replace(served_ranking(pool, 1.0), ranker=PopularityPages(), popularity=reported))  # type: ignore[arg-type]
    assert found.auc[0] == 1.0


def test_curves_show_each_readers_gain_over_the_first_release() -> None:
    rng = np.random.default_rng(0)
    first = rng.uniform(0.4, 0.8, size=200)
    marks = Marks(first, first, first)
    better = Marks(first + 0.01, first, first - 0.02)
    auc, ranked, answered = curves([MeasuredRelease(0, "r1", marks), MeasuredRelease(10, "r2", better)])
    assert (auc.points[0].gain, auc.points[0].low, auc.points[0].high) == (0.0, 0.0, 0.0)
    assert auc.points[1].gain == pytest.approx(0.01)
    assert auc.points[1].low == pytest.approx(0.01), "readers differ by .1, their gains by nothing"
    assert ranked.points[1].gain == pytest.approx(-0.02)
    assert answered.points[1].gain == 0.0


def test_interval_is_normal_for_many_readers() -> None:
    gains = np.random.default_rng(0).normal(0.01, 0.05, size=2_000)
    low, high = gain_interval(gains)
    error = gains.std() / np.sqrt(len(gains))
    assert low == pytest.approx(gains.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(gains.mean() + 1.96 * error, abs=0.1 * error)
