"""Uni-FedRec's recall model in experiments, on a small world of topics."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from experiments.datasets.mind import RaggedArray
from experiments.recall.measure import HeldOut, WarmSplit, recall
from experiments.recall.modes import EmbeddedSplit
from experiments.recall.training import RecallTrainer, history_samples
from experiments.recall.uni_fedrec import Decomposed, FirstModel, scale_of, unified_scores

NEWS, TOPICS, DIM = 600, 30, 256


@cache
def world() -> tuple[EmbeddedSplit, FirstModel]:
    """Articles of 30 topics; every reader reads two of them, early and late."""
    torch.set_num_threads(1)
    draw = np.random.default_rng(5)
    middles = draw.normal(size=(TOPICS, DIM))
    topic = np.arange(NEWS) % TOPICS
    news = middles[topic] + 0.4 * draw.normal(size=(NEWS, DIM))
    news = (news / np.linalg.norm(news, axis=1, keepdims=True)).astype(np.float32)

    def clicks() -> np.ndarray:
        mine = np.isin(topic, draw.choice(TOPICS, size=2, replace=False))
        return np.asarray(draw.choice(np.flatnonzero(mine), size=14, replace=False))

    readers = [clicks() for _ in range(60)]
    measured = HeldOut(tuple(each[:10] for each in readers[:30]), tuple(np.sort(each[10:]) for each in readers[:30]))
    split = WarmSplit(tuple(readers[30:]), measured, NEWS)
    return EmbeddedSplit(split, news, np.ones(NEWS, dtype=np.int64)), FirstModel.of(news)


def recall_of(scores: Decomposed, kind: str, noise_scale: float, depth: int = 50) -> float:
    study, first = world()
    answers = scores.served(study, kind, clip=first.model.score_clip, noise_scale=noise_scale)
    return float(recall(answers, study.split.measured.targets, NEWS, (depth,)).mean())


@pytest.fixture(scope="module")
def decomposed() -> Decomposed:
    study, first = world()
    return Decomposed.of(first, study.news, study.split.measured.histories)


def test_basis_recall_works_without_noise_and_gets_worse_with_more(
    decomposed: Decomposed,
) -> None:
    clip = world()[1].model.score_clip
    shares = [
        recall_of(decomposed, "basis_laplace", scale_of("basis_laplace", epsilon, clip)) for epsilon in (3e4, 300, 1)
    ]
    assert recall_of(decomposed, "basis_laplace", 0.0) > 0.6  # chance is 50 of 600; the clip costs the rest
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.5
    assert shares[-1] < 0.2


def test_unified_score_ranks_a_readers_topics_first() -> None:
    study, first = world()
    history, later = study.split.measured.histories[0], study.split.measured.targets[0]
    others = np.setdiff1d(np.arange(NEWS), np.flatnonzero(np.isin(np.arange(NEWS) % TOPICS, history % TOPICS)))
    scores = unified_scores(first, study.news[history], study.news)
    assert np.median(scores[later]) > np.quantile(scores[others], 0.95)


def test_training_lowers_the_loss_and_the_papers_noise_moves_every_weight() -> None:
    study, first = world()
    shop = RecallTrainer(first, study.news, history_samples(study.split.train, NEWS))
    exact = shop.in_rounds(6, 15, seed=1, rate=3e-4)
    assert np.mean(exact.losses[-2:]) < np.mean(exact.losses[:2])
    noisy = shop.by_the_paper(1, 15, seed=1).weights
    assert all((noisy[name] != value).mean() > 0.99 for name, value in first.weights.items())


def test_history_samples_are_last_clicks_with_their_history() -> None:
    readers = [np.arange(9), np.arange(100, 104), np.arange(20, 41)]
    samples = history_samples(readers, 200)
    assert samples.reader.tolist() == [0] * 3 + [1] * 5
    assert samples.positive.tolist() == [6, 7, 8, 36, 37, 38, 39, 40]
    assert samples.clicks[1].tolist() == [200] * 43 + list(range(7))
    assert isinstance(samples.shown, RaggedArray)
    drawn = samples.candidates(np.arange(8), 4, np.random.default_rng(0))
    assert not set(drawn[:3, 1:].ravel().tolist()) & set(range(9))
    with pytest.raises(ValueError, match="none has enough clicks"):
        history_samples([np.arange(4)], 200)
