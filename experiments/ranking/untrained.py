"""Scorers that train nothing: what every model has to beat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mind import Impressions, Mind
from experiments.ranking.evaluation import ScoreFn, evaluate, metrics
from models.metrics import RankingMetrics
from models.shapes import CLICKS

CLICKS_EXPECTED, SHOWN_EXPECTED = 1.0, 10.0
"""A news that nobody was shown counts as clicked once in ten."""

Rows = NDArray[np.int64]


def random_scores(seed: int) -> ScoreFn:
    """Scores drawn by chance, from a seed."""
    rng = np.random.default_rng(seed)
    return lambda history, candidates: rng.random(len(candidates))


def train_click_rate(mind: Mind) -> ScoreFn:
    """How often a news was clicked when shown, in train impressions."""
    rate = click_rate(*counts(mind.train, len(mind.news)))
    return lambda history, candidates: rate[candidates]


def category_count(mind: Mind) -> ScoreFn:
    """How many of the clicks are of the candidate's category."""
    _, category = np.unique(mind.news.categories, return_inverse=True)
    return lambda history, candidates: (category[candidates][:, None] == category[history]).sum(axis=1)


def softmax_cosine(vectors: NDArray[np.float32], beta: float) -> ScoreFn:
    """Cosines to the last 50 clicks, weighed by softmax(beta cosine); beta = 0 is their mean. Vectors of length 1."""

    def score(history: Rows, candidates: Rows) -> NDArray[Any]:
        newest = history[-CLICKS:]
        if not len(newest):
            return np.zeros(len(candidates))
        cosines = vectors[candidates].astype(np.float64) @ vectors[newest].T
        weights = np.exp(beta * (cosines - cosines.max(axis=1, keepdims=True)))
        found: NDArray[np.float64] = (weights * cosines).sum(axis=1) / weights.sum(axis=1)
        return found

    return score


def counts(impressions: Impressions, news: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How often each news was clicked, and shown: two arrays [news]."""
    shown = impressions.candidates.values
    clicked = np.bincount(shown, weights=impressions.clicked, minlength=news)
    return clicked.astype(np.float64), np.bincount(shown, minlength=news).astype(np.float64)


def click_rate(clicked: NDArray[np.float64], shown: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clicks over displays, drawn towards one in ten while there are few."""
    return (clicked + CLICKS_EXPECTED) / (shown + SHOWN_EXPECTED)


def live_popularity(impressions: Impressions, news: int, *, rate: bool) -> NDArray[np.float64]:
    """A feature of each candidate from everybody else's impressions of the same split, flat.

    rate: the logarithm of clicks over displays; otherwise log(1 + clicks), from 0 to 1. What the reader of the row did
    is left out. Optimistic: the data has no times of display, so clicks of a later hour count too.
    """
    clicked, shown = counts(impressions, news)
    rows = impressions.candidates.values
    others_clicked, others_shown = clicked[rows] - impressions.clicked, shown[rows] - 1
    if rate:
        return np.log(click_rate(others_clicked, others_shown))
    return np.asarray(np.log1p(others_clicked) / np.log1p(clicked.max()))


def flat_scores(impressions: Impressions, score: ScoreFn) -> NDArray[np.float64]:
    """The scores of all candidates."""
    pairs = zip(impressions.histories, impressions.candidates, strict=True)
    return np.concatenate([score(history, candidates) for history, candidates in pairs])


def untrained_table(mind: Mind, vectors: dict[int, NDArray[np.float32]], *, seed: int) -> dict[str, RankingMetrics]:
    """Every untrained scorer on dev, by name. vectors: unit rows by their dimension."""
    dev, news = mind.dev, len(mind.news)
    scorers: dict[str, Callable[[], RankingMetrics]] = {
        "random": lambda: evaluate(dev, random_scores(seed)),
        "click rate in train impressions": lambda: evaluate(dev, train_click_rate(mind)),
        "history-category count": lambda: evaluate(dev, category_count(mind)),
    }
    found = {name: run() for name, run in scorers.items()}
    for dim, rows in sorted(vectors.items(), reverse=True):
        mark = "" if dim == max(vectors) else f" {dim}"
        found[f"mean cosine{mark}"] = evaluate(dev, softmax_cosine(rows, 0.0))
        for sharp in (3, 8):
            found[f"softmax({sharp}) cosine{mark}"] = evaluate(dev, softmax_cosine(rows, sharp))
    widest = vectors[max(vectors)]
    for name, beta in (("softmax(3) cosine", 3.0), ("softmax(8) cosine", 8.0)):
        cosine = flat_scores(dev, softmax_cosine(widest, beta))
        found[f"live popularity + {name}"] = metrics(dev, cosine + 0.1 * live_popularity(dev, news, rate=True))
    counted = live_popularity(dev, news, rate=False)
    found["live click counts + softmax(3) cosine"] = metrics(
        dev, flat_scores(dev, softmax_cosine(widest, 3.0)) + 0.2 * counted
    )
    return found
