"""The frontier's modes on a small synthetic world in which the right answers are known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from backend.measurements.frontier import Frontier, FrontierRow, PairedGain, ValidationChoice
from backend.recall.code_lists import aggregated
from backend.recall.indexes.basis import BasisScan
from backend.recall.posterior import code_weights
from device_app.privacy.noise_sources import SeededNoise
from device_app.reports.modes import MODES
from experiments.recall.frontier import LABORATORY, Sweep, bars, sweeps, unmeasured
from experiments.recall.interests import channels, decomposed, lists, noisy
from experiments.recall.measure import HeldOut, WarmSplit, recall
from experiments.recall.modes import MIXED, EmbeddedSplit, Mixtures, learned_book, nearest, topic_book
from experiments.recall.tower import reader_vectors, train_tower

NEWS, GROUPS, DIM = 600, 6, 32


@cache
def world() -> EmbeddedSplit:
    """600 articles in 6 groups; every reader reads one group only, early and late."""
    draw = np.random.default_rng(5)
    middles = draw.normal(size=(GROUPS, DIM))
    group = np.arange(NEWS) % GROUPS
    news = middles[group] + 0.4 * draw.normal(size=(NEWS, DIM))
    news = (news / np.linalg.norm(news, axis=1, keepdims=True)).astype(np.float32)

    def clicks(count: int) -> np.ndarray:
        return draw.choice(np.flatnonzero(group == draw.integers(GROUPS)), size=count, replace=False)

    readers = [clicks(14) for _ in range(180)]
    measured = HeldOut(tuple(each[:10] for each in readers[:60]), tuple(np.sort(each[10:]) for each in readers[:60]))
    split = WarmSplit(tuple(readers[60:]), measured, NEWS)
    return EmbeddedSplit(split, news, split.recent_clicks())


def recall_of(answers: object, depth: int = 100) -> float:
    study = world()
    return float(recall(answers, study.split.measured.targets, NEWS, (depth,)).mean())  # type: ignore[arg-type]


def test_exact_vector_finds_the_group_of_a_reader_and_popularity_does_not() -> None:
    study = world()
    assert recall_of(study.exact(30.0)) > 0.95  # a group has 100 news
    assert recall_of(study.popular()) < 0.4


def test_code_recall_grows_with_epsilon_up_to_the_noiseless_limit() -> None:
    mixtures = Mixtures(world(), learned_book(world(), GROUPS, seed=7), 30.0)
    shares = [recall_of(mixtures.code(epsilon)) for epsilon in (0.0, 1.0, 3.0, 6.0, 30.0)]
    assert shares == sorted(shares)
    assert shares[-1] > 0.95
    assert recall_of(mixtures.subset(30.0)) == pytest.approx(shares[-1], abs=1e-9)


def test_code_probabilities_are_those_of_randomised_response() -> None:
    study = world()
    book = learned_book(study, GROUPS, seed=7)
    answers = Mixtures(study, book, 10.0).code(2.0)
    true = nearest(study.readers, book.prototypes)
    np.testing.assert_allclose(answers.chance.sum(axis=1), 1)
    own = answers.chance[np.arange(len(true)), true]
    np.testing.assert_allclose(own, np.exp(2) / (np.exp(2) + GROUPS - 1))
    assert (answers.chance[0] / answers.chance[0].min()).max() == pytest.approx(np.exp(2))


def test_frontier_lists_match_the_servers() -> None:
    study = world()
    book = learned_book(study, GROUPS, seed=7)
    answers = Mixtures(study, book, 8.0).code(4.0)
    served = BasisScan.over(book.prototypes, study.news, study.log_popularity)
    weights = np.stack([code_weights(book.shares, 4.0, code) for code in range(GROUPS)])
    expected = served.popular_near(aggregated(weights, book.prototypes), 400, sharpness=8.0)
    for mine, theirs in zip(answers.lists, expected, strict=True):
        assert len(set(mine.tolist()) - set(theirs)) <= 1, "rounding may exchange the last"


@pytest.mark.parametrize("mode", ["topics", "direction"])
def test_each_report_finds_the_group_at_high_epsilon_and_the_default_list_near_zero(mode: str) -> None:
    mixtures = Mixtures(world(), learned_book(world(), GROUPS, seed=7), 30.0)
    common = recall_of(mixtures.code(0.0))
    assert recall_of(getattr(mixtures, mode)(24.0)) > 0.8
    assert recall_of(getattr(mixtures, mode)(0.01)) == pytest.approx(common, abs=0.08)


def test_codebook_of_topics_uses_no_reader_data() -> None:
    study = world()
    without = EmbeddedSplit(WarmSplit((), study.split.measured, NEWS), study.news, study.clicks)
    np.testing.assert_array_equal(topic_book(study, GROUPS, 7).prototypes, topic_book(without, GROUPS, 7).prototypes)


def test_quantised_vectors_with_a_byte_per_subspace_find_nearly_as_much() -> None:
    study = world()
    assert study.codes(16).nbytes == 16 * NEWS
    assert recall_of(study.broadcast(30.0, 16)) > 0.9


def test_channels_of_a_reader_match_the_groups_they_read() -> None:
    study = world()
    two = np.concatenate([np.flatnonzero(np.arange(NEWS) % GROUPS == 0)[:6], [1, 7, 13, 19]])
    both = channels(study.news, study.news, [two])
    assert both.counts == ((6, 4),)
    whole = channels(study.news, study.news, study.split.measured.histories)
    assert recall_of(lists(study, whole, 30.0)) > 0.9
    basis = topic_book(study, GROUPS, 7).prototypes
    assert recall_of(lists(study, decomposed(whole, basis, 20.0), 30.0)) > 0.9


def test_noise_at_a_small_epsilon_drowns_the_papers_report() -> None:
    study = world()
    whole = channels(study.news, study.news, study.split.measured.histories)
    basis = topic_book(study, 30, 7).prototypes
    drowned = noisy(whole, basis, clip=0.2, scale=60.0, source=SeededNoise(1))
    assert recall_of(lists(study, drowned, 30.0)) < 0.4


def test_tower_training_moves_articles_clicked_together_closer() -> None:
    study = world()
    titles = np.random.default_rng(1).normal(size=(NEWS, 300)).astype(np.float32)  # titles that say nothing
    titles /= np.linalg.norm(titles, axis=1, keepdims=True)
    towers = train_tower(titles, study.split.train * 4, kept=(1, 3))
    readers = study.split.train[:40]

    def margin(matrix: np.ndarray) -> float:
        news = titles @ matrix.T
        vectors = reader_vectors(news, [clicks[:10] for clicks in readers])
        own = np.mean([vector @ news[clicks[10:]].T for vector, clicks in zip(vectors, readers, strict=True)])
        return float(own - (vectors @ news.T).mean())

    assert towers[1].shape == (256, 300)
    assert margin(towers[3]) > margin(towers[1]) > 0


def row(mode: str, epsilon: float, gain: float, attack: float | None = None) -> FrontierRow:
    gains = (PairedGain(gain, gain - 1, gain + 1),) * 4
    reported = None if attack is None else (20.0, attack)
    return FrontierRow(mode, epsilon, (20.0, 30.0, 50.0, 69.0 + gain), gains, 15.0, 0.0, 5.0, False, reported)


def frontier(**gains: float) -> Frontier:
    """Return a frontier that meets every target, except for the given changes."""
    table = {
        ("popularity (none)", 0.0): (0.0, 45.0),
        ("exact vector", np.inf): (gains.get("exact", 5.0), gains.get("seen", 67.0)),
        ("broadcast 16 B", 0.0): (4.0, 45.0),
        ("broadcast 32 B", 0.0): (4.6, 45.0),
        ("channels, undecomposed", np.inf): (3.0, None),
        ("channels by 64 topics", np.inf): (gains.get("basis", 2.0), None),
    }
    for sweep in sweeps():
        for epsilon in sweep.epsilons:
            if sweep.mode == "code":
                table[sweep.name, epsilon] = (0.4 * epsilon if epsilon < 9 else 3.2, 45.0 + epsilon / 2)
            elif sweep.size is None:
                table[sweep.name, epsilon] = (gains.get("served", 0.1), None)
            else:
                table[sweep.name, epsilon] = (gains.get("low", 0.0) + epsilon / 10, None)
    rows = tuple(row(mode, epsilon, *values) for (mode, epsilon), values in table.items())
    return Frontier(rows, ValidationChoice(4, {}), 77.0, 700, 3.7, {})


def test_frontier_with_the_studys_figures_meets_every_target() -> None:
    assert [bar.what for bar in bars(frontier()) if not bar.met] == []


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"exact": 3.9}, "exact vector, R@400 over popularity"),
        ({"seen": 59.0}, "attack on the exact vector (else the attack is blind)"),
        ({"basis": 1.0}, "topic-centroid basis, R@400 below undecomposed"),
        ({"low": -0.7}, "the lowest of every mode that reports, as served, R@400"),
        ({"served": -0.6}, "the lowest of every mode that reports, as served, R@400"),
    ],
)
def test_missed_target_is_reported(given: dict[str, float], what: str) -> None:
    assert what in [bar.what for bar in bars(frontier(**given)) if not bar.met]


def test_frontier_measures_every_reporting_mode() -> None:
    assert unmeasured() == ()
    reporting = {mode.name for mode in MODES.values() if mode.reporter is not None}
    assert {sweep.mode for sweep in sweeps()} == {*reporting, *LABORATORY}
    assert len({sweep.name for sweep in sweeps()}) == len(list(sweeps()))


def test_unmeasurable_mode_is_named_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODES, "toy", replace(MODES["subset"], name="toy"))
    assert unmeasured() == ("toy",)
    assert "toy" not in {sweep.mode for sweep in sweeps()}
    monkeypatch.setitem(MIXED, "toy", Mixtures.subset)
    assert Sweep("toy", (1.0, 4.0, 16.0), 16) in list(sweeps())
