"""The models of the ranking study: how each is built, on which vectors, and at which rate it learns.

Rates are Adam's, chosen once for the family and not searched on dev.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from device_app.ranking.features import FEATURES, share_of_clicks
from experiments.datasets.mind import Mind
from experiments.ranking.untrained import counts
from experiments.simulation.readers import FeatureFunction
from models.builders.rankers import candidate_attention, feature_ranker, nrms, nrms_user
from models.builders.user import fednewsrec, fednewsrec_user, lstur_user, naml, naml_user
from models.shapes import HEAD_DIM, HEADS, NEWS_DIM
from models.user.candidate_attention import CandidateAttention
from models.user.feature_ranker import FeatureRanker

ATTENTION_DIM = 200
SMALL_RATE, FEATURE_RATE = 3e-3, 3e-4
"""Slow for features: negatives of histories come from other readers' clicks, so at .003 the weights of sections and
topics grow to .15 and more, and dev falls by .008."""
RANDOM_RATE, COSINE_RATE, GRU_RATE, LSTUR_RATE = 1e-3, 1e-4, 1e-5, 1e-6
"""The papers' models. From the cosine a GRU has to go slowly: FedNewsRec at 1e-4 lost .032 of dev AUC in 400 steps.
LSTUR's input weight starts at .1 I, small beside Adam's steps: at 1e-5 it lost .027 +- .012 on later train impressions,
at 1e-6 .002 +- .003, by hardly learning."""
WIDE_DIM = 384


@dataclass(frozen=True)
class StudyModel:
    """One model. cosine_start: its step 0 should rank like the cosine; features: names of FEATURES, or none."""

    name: str
    build: Callable[[], nn.Module]
    dim: int
    learning_rate: float
    cosine_start: bool
    features: tuple[str, ...] = ()

    def model(self, seed: int) -> nn.Module:
        """The model at its start; the seed fixes what is random in it."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return self.build()


def small(dim: int, beta: float) -> CandidateAttention:
    """Candidate attention that starts at the softmax(beta) cosine."""
    model = candidate_attention(dim)
    with torch.no_grad():
        model.beta.fill_(beta)
    return model


def with_features(beta: float) -> FeatureRanker:
    """The feature form at its known start, on the softmax(beta) cosine."""
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
    """The device's features over the catalogue. Popularity is that of the train split; MIND has no times of
    publication, so recency is 0."""
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
