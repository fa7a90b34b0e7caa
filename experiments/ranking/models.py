"""Untrained scorers, which every model has to beat, and the models of the ranking study.

Each model has its builder, vectors and learning rate. Rates are Adam's, chosen once for each family and not tuned on
dev.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from device_app.ranking.ranker import FEATURES, share_of_clicks
from experiments.datasets.mind import Impressions, Mind
from experiments.ranking.evaluation import ScoreFn, evaluate, metrics
from experiments.simulation.readers import FeatureFunction
from models.builders.rankers import candidate_attention, feature_ranker, nrms, nrms_user
from models.builders.user import fednewsrec, fednewsrec_user, lstur_user, naml, naml_user
from models.metrics import RankingMetrics
from models.shapes import CLICKS, HEAD_DIM, HEADS, NEWS_DIM
from models.user.candidate_attention import CandidateAttention, FeatureRanker

CLICKS_EXPECTED, SHOWN_EXPECTED = 1.0, 10.0
"""Prior counts: an article without displays counts as clicked once in ten displays."""

Rows = NDArray[np.int64]


def random_scores(seed: int) -> ScoreFn:
    """Return a scorer with seeded random scores."""
    rng = np.random.default_rng(seed)
    return lambda history, candidates: rng.random(len(candidates))


def train_click_rate(mind: Mind) -> ScoreFn:
    """Return a scorer by how often an article was clicked when shown, in train impressions."""
    rate = click_rate(*counts(mind.train, len(mind.news)))
    return lambda history, candidates: rate[candidates]


def category_count(mind: Mind) -> ScoreFn:
    """Return a scorer by the number of clicks in the candidate's category."""
    _, category = np.unique(mind.news.categories, return_inverse=True)
    return lambda history, candidates: (category[candidates][:, None] == category[history]).sum(axis=1)


def softmax_cosine(vectors: NDArray[np.float32], beta: float) -> ScoreFn:
    """Return a scorer by cosines to the last 50 clicks, weighted by softmax(beta cosine).

    With beta = 0 it is their mean. Vectors have length 1.
    """

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
    """Return how often each article was clicked and shown: two arrays [n]."""
    shown = impressions.candidates.values
    clicked = np.bincount(shown, weights=impressions.clicked, minlength=news)
    return clicked.astype(np.float64), np.bincount(shown, minlength=news).astype(np.float64)


def click_rate(clicked: NDArray[np.float64], shown: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return clicks over displays, shrunk towards one in ten while there are few."""
    return (clicked + CLICKS_EXPECTED) / (shown + SHOWN_EXPECTED)


def live_popularity(impressions: Impressions, news: int, *, rate: bool) -> NDArray[np.float64]:
    """Return a feature of each candidate from all other impressions of the same split, flat.

    rate: the logarithm of clicks over displays; otherwise log(1 + clicks), scaled to 0 to 1. The row's own reader is
    left out. Optimistic: the data has no times of display, so later clicks count too.
    """
    clicked, shown = counts(impressions, news)
    rows = impressions.candidates.values
    others_clicked, others_shown = clicked[rows] - impressions.clicked, shown[rows] - 1
    if rate:
        return np.log(click_rate(others_clicked, others_shown))
    return np.asarray(np.log1p(others_clicked) / np.log1p(clicked.max()))


def flat_scores(impressions: Impressions, score: ScoreFn) -> NDArray[np.float64]:
    pairs = zip(impressions.histories, impressions.candidates, strict=True)
    return np.concatenate([score(history, candidates) for history, candidates in pairs])


def untrained_table(mind: Mind, vectors: dict[int, NDArray[np.float32]], *, seed: int) -> dict[str, RankingMetrics]:
    """Return the metrics of every untrained scorer on dev, by name. vectors: unit rows by their dimension."""
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


ATTENTION_DIM = 200
SMALL_RATE, FEATURE_RATE = 3e-3, 3e-4
"""Learning rates. The rate for features is low: negatives of histories come from other readers' clicks, so at .003 the
weights of sections and topics grow to .15 and more, and dev falls by .008.
"""
RANDOM_RATE, COSINE_RATE, GRU_RATE, LSTUR_RATE = 1e-3, 1e-4, 1e-5, 1e-6
"""Learning rates of the papers' models. Starting from the cosine, a GRU needs a low rate: FedNewsRec at 1e-4 lost .032
of dev AUC in 400 steps. LSTUR's input weight starts at .1 I, small beside Adam's steps: at 1e-5 it lost .027 +- .012 on
later train impressions, at 1e-6 .002 +- .003, because it hardly learned.
"""
WIDE_DIM = 384


@dataclass(frozen=True)
class StudyModel:
    """One model of the study.

    cosine_start: whether it should rank like the cosine before training. features: names of FEATURES, or none.
    """

    name: str
    build: Callable[[], nn.Module]
    dim: int
    learning_rate: float
    cosine_start: bool
    features: tuple[str, ...] = ()

    def model(self, seed: int) -> nn.Module:
        """Build the model in its initial state; the seed determines its random parts."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return self.build()


def small(dim: int, beta: float) -> CandidateAttention:
    """Return candidate attention that starts as the softmax(beta) cosine."""
    model = candidate_attention(dim)
    with torch.no_grad():
        model.beta.fill_(beta)
    return model


def with_features(beta: float) -> FeatureRanker:
    """Return the feature ranker with its known initial weights, on the softmax(beta) cosine."""
    model = feature_ranker()
    with torch.no_grad():
        model.matching.beta.fill_(beta)
    return model


STUDY_MODELS: dict[str, StudyModel] = {
    each.name: each
    for each in (
        StudyModel("candidate attention 384", lambda: small(WIDE_DIM, 3.0), WIDE_DIM, SMALL_RATE, True),
        StudyModel("candidate attention 256", lambda: small(NEWS_DIM, 3.0), NEWS_DIM, SMALL_RATE, True),
        StudyModel("candidate attention 256, beta 8", lambda: small(NEWS_DIM, 8.0), NEWS_DIM, SMALL_RATE, True),
        StudyModel("feature ranker 256", lambda: with_features(3.0), NEWS_DIM, FEATURE_RATE, True, tuple(FEATURES)),
        StudyModel(
            "NRMS, random start",
            lambda: nrms(heads=HEADS, head_dim=HEAD_DIM, attention_dim=ATTENTION_DIM),
            NEWS_DIM,
            RANDOM_RATE,
            False,
        ),
        StudyModel("NRMS, cosine start", nrms_user, NEWS_DIM, COSINE_RATE, True),
        StudyModel(
            "NAML, random start", lambda: naml(dim=NEWS_DIM, attention_dim=ATTENTION_DIM), NEWS_DIM, RANDOM_RATE, False
        ),
        StudyModel("NAML, cosine start", naml_user, NEWS_DIM, COSINE_RATE, True),
        StudyModel("LSTUR ini, cosine start", lambda: lstur_user("ini"), NEWS_DIM, LSTUR_RATE, True),
        StudyModel("LSTUR con, cosine start", lambda: lstur_user("con"), NEWS_DIM, LSTUR_RATE, True),
        StudyModel(
            "FedNewsRec, random start",
            lambda: fednewsrec(heads=HEADS, head_dim=HEAD_DIM, attention_dim=ATTENTION_DIM),
            NEWS_DIM,
            RANDOM_RATE,
            False,
        ),
        StudyModel("FedNewsRec, cosine start", fednewsrec_user, NEWS_DIM, GRU_RATE, True),
    )
}


def features_of(names: tuple[str, ...], mind: Mind) -> FeatureFunction:
    """Return the device's features over the catalogue.

    Popularity is that of the train split; MIND has no times of publication, so recency is 0.
    """
    _, section = np.unique(mind.news.categories, return_inverse=True)
    _, topic = np.unique(mind.news.subcategories, return_inverse=True)
    section, topic = (np.append(column, -1).astype(np.int64) for column in (section, topic))
    clicked, _ = counts(mind.train, len(mind.news))
    for history in mind.train.longest_histories().values():
        np.add.at(clicked, np.unique(history), 1)
    popularity = np.append(np.log1p(clicked) / np.log1p(clicked.max()), 0.0)
    padding = len(mind.news)

    def columns(clicks: NDArray[np.int64], candidates: NDArray[np.int64]) -> NDArray[np.float32]:
        found = np.zeros((*candidates.shape, len(names)), dtype=np.float32)
        for row, (history, shown) in enumerate(zip(clicks, candidates, strict=True)):
            real = history[history != padding]
            known = {
                "section_affinity": share_of_clicks(section[shown], section[real]),
                "topic_affinity": share_of_clicks(topic[shown], topic[real]),
                "popularity": popularity[shown],
                "recency": np.zeros(len(shown)),
            }
            found[row] = np.stack([known[name] for name in names], axis=1)
        return found

    return columns
