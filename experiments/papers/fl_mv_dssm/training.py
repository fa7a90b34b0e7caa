"""The trainings behind Tables II and III of FL-MV-DSSM, one function for each row, with their metrics.

The metrics are precision, recall, nDCG at 10 and AUC of ranked films, mean over users (FL-MV-DSSM, section V).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.movielens import FOLDER, load_movielens
from experiments.papers.fl_mv_dssm.baselines import Central, Factorising, factorise, train_centrally
from experiments.papers.fl_mv_dssm.cohort import ItemSpace
from experiments.papers.fl_mv_dssm.features import ItemFactors, Vocabulary, demographics
from experiments.papers.fl_mv_dssm.protocols import PROTOCOLS, MovieLensSplit, validation
from experiments.papers.fl_mv_dssm.rounds import SYSTEMS, Choices, Features, fit_personal_towers, predict, train
from models.metrics import by_impression, top_k

K = 10


@dataclass(frozen=True)
class Figures:
    """Means over the users with test items.

    nDCG has its usual definition; the paper's figures show that it used another one.
    """

    precision: float
    recall: float
    ndcg: float
    auc: float
    users: int


def evaluate(
    scores: NDArray[np.float32], split: MovieLensSplit, candidates: NDArray[np.int64] | None = None
) -> Figures:
    """Rank the test items of each user in `split.asked` among the candidates, without the user's own training items.

    scores [n, m]; candidates: columns, the protocol's own by default. Raises ValueError for a wrong shape.
    """
    if scores.shape != split.test.shape:
        raise ValueError(f"scores must have shape {split.test.shape}, got {scores.shape}")
    among = split.candidates if candidates is None else candidates
    tested_users = split.asked
    shown = np.ones((len(tested_users), scores.shape[1]), dtype=bool)
    shown[split.train[tested_users].nonzero()] = False
    shown = shown[:, among]
    wanted = split.test[tested_users].toarray()[:, among][shown] > 0
    owners = np.repeat(np.arange(len(tested_users)), shown.sum(axis=1))
    labels, flat = wanted.astype(np.int64), scores[tested_users][:, among][shown]
    top, ranked = top_k(owners, labels, flat, K), by_impression(owners, labels, flat)
    return Figures(top.precision, top.recall, top.ndcg, ranked.auc, top.impressions)


HELD_OUT, ALL = "held-out films", "all films"
PREDICTION_SIGMA, PREDICTION_CLIP = 1.0, 2**0.5
"""Two vectors of probabilities are at most sqrt 2 apart, for any view."""

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class MovieLensSettings:
    """rounds: of every federated training. validate: test on a part of train, never on the test items (warm only)."""

    rounds: int = 100
    validate: bool = False


@dataclass(frozen=True)
class MovieLensRun:
    """The metrics of one row in one build; `seconds`: of its training on one core."""

    row: str
    build: int
    figures: Figures
    seconds: float


@dataclass(frozen=True)
class MovieLensBench:
    """The data, and everything that does not depend on a split."""

    data: Path

    @cached_property
    def movielens(self) -> Any:
        return load_movielens(self.data / FOLDER)

    @cached_property
    def films(self) -> ItemSpace:
        return ItemSpace(Vocabulary.of(self.movielens.titles).films(self.movielens))

    def split(self, protocol: str, build: int, settings: MovieLensSettings) -> MovieLensSplit:
        """Return the protocol's split for a build; the same for all systems."""
        rng = np.random.default_rng((build, list(PROTOCOLS).index(protocol)))
        found = PROTOCOLS[protocol](self.movielens, rng)
        return validation(found, rng) if settings.validate else found

    def features(self, split: MovieLensSplit, *, left_vectors: bool = False) -> Features:
        """Return the views of all users; View-2 is folded in from training items, by factors of the training users."""
        trained = ItemFactors.of(split.train[split.trained])
        second = trained.left_vectors(split.train) if left_vectors else trained.fold_in(split.train)
        users = {"view_1": demographics(self.movielens, split.trained), "view_2": second}
        return Features(users, self.films)  # type: ignore[arg-type]


Scorer = Callable[[MovieLensBench, MovieLensSplit, int, MovieLensSettings, Choices], dict[str, Scores]]
"""Trains, and returns the scores for each row of the training, by the suffix of the row's name."""


def federated(system: str, *, noise: bool = False, left_vectors: bool = False) -> Scorer:
    """Return the scorer of a FL-MV-DSSM system, optionally with sigma 1 in training, or with left vectors (View-2
    without scaling).
    """

    def score(
        bench: MovieLensBench, split: MovieLensSplit, build: int, settings: MovieLensSettings, choices: Choices
    ) -> dict[str, Scores]:
        features = bench.features(split, left_vectors=left_vectors)
        if noise:
            choices = replace(choices, sigma=1.0)
        towers = train(SYSTEMS[system], features, split, choices, build)
        towers = fit_personal_towers(towers, features, split, choices, build)
        return {"": predict(towers, features, choices.gamma)}

    return score


def noisy_prediction(system: str) -> Scorer:
    """Return a scorer trained without noise, in which every view adds its own noise to its predictions."""

    def score(
        bench: MovieLensBench, split: MovieLensSplit, build: int, settings: MovieLensSettings, choices: Choices
    ) -> dict[str, Scores]:
        features = bench.features(split)
        towers = train(SYSTEMS[system], features, split, choices, build)
        towers = fit_personal_towers(towers, features, split, choices, build)
        rng = np.random.default_rng((build, choices.rounds))
        deviation = PREDICTION_SIGMA * PREDICTION_CLIP
        return {"": predict(towers, features, choices.gamma, deviation=deviation, rng=rng)}

    return score


def central(view: Any, *, left_vectors: bool = False) -> Scorer:
    """Return the scorer of one view, with all data in one place."""

    def score(
        bench: MovieLensBench, split: MovieLensSplit, build: int, settings: MovieLensSettings, choices: Choices
    ) -> dict[str, Scores]:
        how = Central()
        features = bench.features(split, left_vectors=left_vectors)
        return {"": predict(train_centrally(view, features, split, how, build), features, how.gamma)}

    return score


def factorised(how: Factorising) -> Scorer:
    """Return the scorer of FCF and FED-MVMF."""

    def score(
        bench: MovieLensBench, split: MovieLensSplit, build: int, settings: MovieLensSettings, choices: Choices
    ) -> dict[str, Scores]:
        factorising = replace(how, rounds=settings.rounds)
        films = Vocabulary.of(bench.movielens.titles).films(bench.movielens)
        found = factorise(split, demographics(bench.movielens, split.trained), films, factorising, build)
        return {"": found.astype(np.float32)}

    return score


@dataclass(frozen=True)
class Training:
    """One training: its protocol, function, maximum number of builds, and table."""

    protocol: str
    scorer: Scorer
    builds: int = 10**6
    table: Literal["u1", "warm", "cold", "noise", "scale"] = "warm"


WARM: dict[str, Scorer] = {
    "Central DSSM View-1": central("view_1"),
    "Central DSSM View-2": central("view_2"),
    "FCF": factorised(Factorising(rate=0.03)),
    "FED-MVMF": factorised(Factorising(rate=0.03, user_weight=1.0, item_weight=1.0)),
    **{name: federated(name) for name in SYSTEMS},
}
TRAININGS: dict[str, Training] = {
    **{f"{name}, u1": Training("u1", scorer, table="u1") for name, scorer in WARM.items()},
    **{name: Training("warm", scorer) for name, scorer in WARM.items()},
    "CS-Users": Training("cold users", federated("FL-MV-DSSM"), table="cold"),
    "CS-Items": Training("cold items", federated("FL-MV-DSSM"), table="cold"),
    "CS-Users-Items": Training("cold users and items", federated("FL-MV-DSSM"), table="cold"),
    "SEMI-FL-MV-DSSM, sigma 1": Training("warm", federated("SEMI-FL-MV-DSSM", noise=True), 1, "noise"),
    "SEMI-FL-MV-DSSM, noisy prediction": Training("warm", noisy_prediction("SEMI-FL-MV-DSSM"), 1, "noise"),
    "Central DSSM View-2, U": Training("u1", central("view_2", left_vectors=True), 1, "scale"),
    "FL-DSSM View-2, U": Training("u1", federated("FL-DSSM View-2", left_vectors=True), 1, "scale"),
    "FL-MV-DSSM, U": Training("u1", federated("FL-MV-DSSM", left_vectors=True), 1, "scale"),
    "SEMI-FL-MV-DSSM, U": Training("u1", federated("SEMI-FL-MV-DSSM", left_vectors=True), 1, "scale"),
}


def run_training(
    bench: MovieLensBench, name: str, build: int, settings: MovieLensSettings, choices: Choices
) -> list[MovieLensRun]:
    """Run one training of one build: one row, or two if held-out films are ranked alone and among all."""
    began = time.process_time()
    training = TRAININGS[name]
    split = bench.split(training.protocol, build, settings)
    found = training.scorer(bench, split, build, settings, replace(choices, rounds=settings.rounds))
    seconds = time.process_time() - began
    every = np.arange(split.test.shape[1])
    film_sets = (
        {"": split.candidates} if len(split.candidates) == len(every) else {HELD_OUT: split.candidates, ALL: every}
    )
    return [
        MovieLensRun(f"{name}, {among}" if among else name, build, evaluate(scores, split, films), seconds)
        for scores in found.values()
        for among, films in film_sets.items()
    ]
