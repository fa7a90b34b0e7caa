"""Uni-FedRec's tables and figures on a synthetic world of 30 topics, in which readers read two each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.papers.uni_fedrec.study import (
    DEPTHS,
    MEAN,
    PAPER,
    RANKERS,
    RECALLED,
    UniFedRecStudy,
    decoded,
    ranked_lists,
    shares,
    undecomposed,
    unread_lists,
    variants,
)
from experiments.recall.measure import HeldOut, WarmSplit
from experiments.recall.modes import EmbeddedSplit
from experiments.recall.uni_fedrec import Decomposed, FirstModel
from models.metrics import auc

NEWS, TOPICS, DIM = 1_200, 30, 256
OWN = 2 * NEWS // TOPICS


@pytest.fixture(scope="module")
def study() -> EmbeddedSplit:
    draw = np.random.default_rng(5)
    topic = np.arange(NEWS) % TOPICS
    news = draw.normal(size=(TOPICS, DIM))[topic] + 0.4 * draw.normal(size=(NEWS, DIM))
    news = (news / np.linalg.norm(news, axis=1, keepdims=True)).astype(np.float32)

    def clicks() -> np.ndarray:
        mine = np.isin(topic, draw.choice(TOPICS, size=2, replace=False))
        return np.asarray(draw.choice(np.flatnonzero(mine), size=14, replace=False))

    readers = [clicks() for _ in range(80)]
    measured = HeldOut(tuple(each[:10] for each in readers[:40]), tuple(np.sort(each[10:]) for each in readers[:40]))
    return EmbeddedSplit(WarmSplit(tuple(readers[40:]), measured, NEWS), news, np.ones(NEWS, dtype=np.int64))


@pytest.fixture(scope="module")
def model(study: EmbeddedSplit) -> FirstModel:
    return FirstModel.of(study.news)


def at_100(study: EmbeddedSplit, answers: object) -> tuple[float, float]:
    found = shares(study, answers)  # type: ignore[arg-type]
    return float(found.future[:, 0].mean()), float(found.past[:, 0].mean())


def test_noise_lowers_recall_of_later_clicks_and_of_the_history(study: EmbeddedSplit, model: FirstModel) -> None:
    clear, mild, drowned = (at_100(study, decoded(study, model, 1, noise)) for noise in (0.0, 0.1, 30.0))
    for kind in (0, 1):  # of later clicks, of the history
        assert clear[kind] > mild[kind] > drowned[kind]
    assert drowned[0] == pytest.approx(DEPTHS[0] / NEWS, abs=0.04), "chance"


def test_lists_without_basic_interests_hold_a_readers_own_topics_first(study: EmbeddedSplit, model: FirstModel) -> None:
    answers = undecomposed(study, model, 0)
    for reader, history in enumerate(study.split.measured.histories):
        first = answers.lists[answers.choice[reader, 0], : OWN // 2]
        assert np.isin(first % TOPICS, history % TOPICS).mean() > 0.95
    assert answers.lists.shape == (40, max(DEPTHS))


def test_infinite_clustering_distance_gives_one_channel(study: EmbeddedSplit, model: FirstModel) -> None:
    found = Decomposed.of(replace(model, distance=np.inf), study.news, study.split.measured.histories)
    assert {len(counts) for counts in found.counts} == {1}


def test_shares_of_history_and_of_later_clicks_match_a_direct_count(study: EmbeddedSplit, model: FirstModel) -> None:
    answers = variants(True)[MEAN](study, model, 0)
    found = shares(study, answers)
    for reader in range(5):
        listed = set(answers.lists[answers.choice[reader, 0]][: DEPTHS[1]].tolist())
        for counted, wanted in (
            (found.future, study.split.measured.targets[reader]),
            (found.past, study.split.measured.histories[reader]),
        ):
            assert counted[reader, 1] == pytest.approx(len(listed & set(wanted.tolist())) / len(set(wanted.tolist())))


def test_aucs_of_ranked_lists_match_a_ranking_of_the_whole_pool(study: EmbeddedSplit, model: FirstModel) -> None:
    answers = decoded(study, model, 0, 0.0)
    unread = unread_lists(study.split, answers)
    scores = np.random.default_rng(2).normal(size=len(unread.clicked)).astype(np.float32)
    in_lists, in_pool = [], []
    place = 0
    for reader, (history, targets) in enumerate(
        zip(study.split.measured.histories, study.split.measured.targets, strict=True)
    ):
        pool = np.full(NEWS, -np.inf)
        mine = [each for each in answers.lists[answers.choice[reader, 0]][:RECALLED] if each not in history]
        pool[mine] = scores[place : place + len(mine)]
        place += len(mine)
        labels = np.isin(np.arange(NEWS), targets)
        new = ~np.isin(np.arange(NEWS), history)
        in_pool.append(auc(labels[new], pool[new]))
        if labels[mine].any():
            in_lists.append(auc(labels[mine], pool[mine]))
    assert place == len(scores)
    assert 0 < len(in_lists) < len(in_pool) or np.ptp(in_pool) > 0
    assert ranked_lists(study.split, unread, scores) == pytest.approx(
        [np.mean(in_lists), np.mean(in_pool), len(in_lists)]
    )


def test_study_tables_have_every_variant_and_resume_from_rows() -> None:
    names = list(variants(False))
    assert {"lambda 1.2 (Figure 5)", "d 1 of the served (Figure 6)", PAPER} <= set(names)
    study = UniFedRecStudy(Path("nowhere"), repeats=2)
    runs = {
        ("seed", seed): {
            "seed": seed,
            "measured": {name: [[0.1 + seed / 10] * len(DEPTHS), [0.5] * len(DEPTHS)] for name in names},
            "losses": {"0.01": [2.0 - step / 60 for step in range(60)]},
            "ranked": {PAPER: {ranker: [0.7 + seed / 10, 0.6, 50 + 10 * seed] for ranker in RANKERS}},
        }
        for seed in range(2)
    }
    assert study.runs([row for job, run in runs.items() for row in study.rows(job, run)]) == runs
    object.__setattr__(study, "__dict__", {**study.__dict__, "split": WarmSplit((), HeldOut((), ()), 0), "news": ()})
    found, revealed, ranked, losses = study.tables(runs)
    assert ranked.rows == [(PAPER, *["0.7500 +- 0.0707"] * len(RANKERS), "55 +- 7", "0.6000 +- 0.0000")]
    assert [row[0] for row in found.rows] == names
    assert found.rows[0][1] == "15.0 +- 7.1"
    assert revealed.rows[0][1] == "50.0 +- 0.0"
    assert losses.rows[0][1:] == ("2.000 +- 0.000", "1.750 +- 0.000", "1.500 +- 0.000", "1.017 +- 0.000")
