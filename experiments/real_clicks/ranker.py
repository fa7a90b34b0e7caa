"""The default ranker on eight features without text: trained centrally on whole lists, and in simulated rounds.

Devices run the live task on the exported gradient graph of `FeatureRanker`. Its text match is zero, as every article
has the same zero vector; the features, the sharpness and two unused parameters remain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from backend.federation.optimizers import Adam, StatefulOptimizer
from backend.federation.strategies.fedavg import FedAvg
from device_app.training.gradients import OnnxGradients
from device_app.training.samples import Samples
from device_app.training.tasks.full_gradient import FullGradientTask
from experiments.real_clicks.features import FEATURES, Floats, Integers, Log
from experiments.simulation.clients import OneProcess, Protect, SimulatedDevice, gradient_graph, in_clear, ranker_inputs
from experiments.simulation.rounds import AfterRound, Rounds, simulate
from exporters.signature import parameters
from models.metrics import by_impression
from models.shapes import CLICKS, NEGATIVES
from models.user.candidate_attention import CandidateAttention, FeatureRanker

TEXT_DIM = 1
SAMPLES_LIMIT = 32
LEARNING_RATE = 0.1
WEIGHTS = "feature_weights"


@dataclass(frozen=True)
class Lists:
    """Impressions with features: m lists with n candidates.

    users [m]; offsets [m + 1] of each list's candidates; features [n, F]; clicked, 0 or 1 for each candidate, [n].
    """

    users: Integers
    offsets: Integers
    features: Floats
    clicked: Integers

    @classmethod
    def of(cls, log: Log, features: Floats, *, test: bool) -> Lists:
        """Return the impressions of the second or the first week that have a click and a skipped article."""
        clicks = np.bincount(log.owners, log.clicked, len(log.users))
        rows = (log.test == test) & (clicks > 0) & (clicks < log.candidates.lengths)
        kept = rows[log.owners]
        offsets = np.concatenate([[0], np.cumsum(log.candidates.lengths[rows])])
        return cls(log.users[rows], offsets, features[kept], log.clicked[kept])

    def __len__(self) -> int:
        return len(self.users)

    @cached_property
    def of_reader(self) -> list[Integers]:
        """Return the lists of each reader who has any, in the order of the users' rows."""
        order = np.argsort(self.users, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.users[order])) + 1)


def listwise_loss(weights: Floats, lists: Lists) -> tuple[float, Floats]:
    """Return the mean over lists of -log softmax(score) of the clicked articles, and its gradient [F].

    The score is features @ weights; a list with several clicks adds a term for each (Cao et al. 2007, top-one
    probability).
    """
    starts, owners = lists.offsets[:-1], np.repeat(np.arange(len(lists)), np.diff(lists.offsets))
    scores = lists.features @ weights
    highest = np.maximum.reduceat(scores, starts)
    odds = np.exp(scores - highest[owners])
    totals = np.add.reduceat(odds, starts)
    clicks = np.add.reduceat(lists.clicked.astype(np.float64), starts)
    loss = clicks @ (np.log(totals) + highest) - lists.clicked @ scores
    slopes = clicks[owners] * odds / totals[owners] - lists.clicked
    return float(loss) / len(lists), lists.features.T @ slopes / len(lists)


def central_weights(lists: Lists) -> Floats:
    """Return the weights [F] that minimise the listwise loss of all lists, by L-BFGS."""
    found = minimize(listwise_loss, np.zeros(lists.features.shape[1]), args=(lists,), jac=True, method="L-BFGS-B")
    return np.asarray(found.x, dtype=np.float64)


@dataclass(frozen=True)
class ReaderLists:
    """One reader's lists; a `SampleSource`."""

    lists: Lists
    reader: int

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Draw at most `limit` clicks, each with skipped articles of its list, drawn with replacement."""
        rows = self.lists.of_reader[self.reader]
        drawn = []
        for row in rng.permutation(rows)[:limit]:
            places = np.arange(*self.lists.offsets[row : row + 2])
            clicked = self.lists.clicked[places] == 1
            skipped = rng.choice(places[~clicked], size=negatives)
            drawn.append(np.concatenate([rng.choice(places[clicked], size=1), skipped]))
        found = self.lists.features[np.stack(drawn)].astype(np.float32)
        count = len(found)
        return Samples(
            np.zeros((count, CLICKS, TEXT_DIM), np.float32),
            np.zeros((count, CLICKS), np.float32),
            np.zeros((count, 1 + negatives, TEXT_DIM), np.float32),
            found,
        )


def initial_ranker(features: tuple[str, ...] = FEATURES) -> FeatureRanker:
    """Return the ranker in its initial state without known weights: all scores are 0."""
    ranker = FeatureRanker(CandidateAttention(TEXT_DIM), features)
    ranker.cosine_start()
    return ranker


def device_of(lists: Lists, features: tuple[str, ...], seed: int, protect: Protect = in_clear) -> SimulatedDevice:
    """Return the simulated device: the live task, on the exported gradient graph."""
    graph = gradient_graph(initial_ranker(features), ranker_inputs(TEXT_DIM, len(features)))
    task = FullGradientTask(NEGATIVES, SAMPLES_LIMIT, features)
    return SimulatedDevice(task, OnnxGradients(graph), lambda reader: ReaderLists(lists, reader), seed, protect)


def train_in_rounds(
    lists: Lists,
    features: tuple[str, ...],
    plan: Rounds,
    protect: Protect,
    after_round: Callable[[int, Floats], None],
) -> None:
    """Run federated rounds; after each, call `after_round` with its number and the features' weights [F]."""
    weights = {name: value.numpy() for name, value in parameters(initial_ranker(features)).items()}

    def report(number: int, current: Mapping[str, NDArray[np.float32]]) -> None:
        after_round(number, current[WEIGHTS].astype(np.float64))

    after: AfterRound = report
    clients = OneProcess(device_of(lists, features, plan.seed, protect))
    simulate(clients, weights, plan, FedAvg(), StatefulOptimizer(Adam(LEARNING_RATE)), after_round=after)


@dataclass(frozen=True)
class ReaderMetrics:
    """AUC and nDCG@10 summed over the impressions of each reader, and the number of impressions: [readers] each."""

    auc: Floats
    ndcg10: Floats
    impressions: Integers

    @classmethod
    def of(cls, lists: Lists, weights: Floats) -> ReaderMetrics:
        """Evaluate these weights on the lists."""
        scores = lists.features @ weights
        sums = []
        for rows in lists.of_reader:
            places = np.concatenate([np.arange(*lists.offsets[row : row + 2]) for row in rows])
            owners = np.repeat(rows, lists.offsets[rows + 1] - lists.offsets[rows])
            found = by_impression(owners, lists.clicked[places], scores[places])
            sums.append((found.auc * len(rows), found.ndcg10 * len(rows), len(rows)))
        auc, ndcg10, impressions = np.array(sums).T
        return cls(auc, ndcg10, impressions.astype(np.int64))
