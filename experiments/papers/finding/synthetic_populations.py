"""Newsroom readers in two populations with known interests, and how well groups separate them.

"Of the hour" reads football, politics and markets, and prefers the newest articles. "At leisure" reads food, travel and
books, and prefers the oldest. All open articles of their favourite topics as the fleet's readers do. One ranker for
both has to ignore recency, which is the case FINDING is made for. The control is a population of one kind, in which
groups have nothing to learn and should cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from device_app.feed.candidates import Candidates
from device_app.feed.feature_context import feature_context_at
from device_app.feed.scores import recency
from device_app.fleet.simulated_interests import SimulatedInterests
from device_app.ranking.padding import left_padded
from device_app.ranking.ranker import FEATURES, feature_columns
from device_app.training.samples import Samples
from experiments.bench.heldout_readers import CLICKS, RECENCY_HALF_LIFE_HOURS, Pool
from experiments.simulation.strategies.method import ModelChoice
from exporters.signature import call
from models.metrics import auc
from protocol.news import NewsCard

HOUR = ("football", "world", "markets", "business", "crime", "politics", "climate", "basketball", "cycling", "health")
LEISURE = ("technology", "science", "motoring", "film", "education", "music", "food", "books", "travel", "games")
TRUE_GROUPS = (HOUR, LEISURE)
TRAINED_ON, JUDGED_ON = 200, 200
"""Articles that a reader has seen and may learn from, and articles that it sees later."""
CHUNK = 32

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class SeenArticles:
    """Articles that a reader saw: rows [R] of the pool, 1 where opened, features [R, F] on its device."""

    rows: Rows
    opened: Rows
    features: Vectors


@dataclass(frozen=True)
class SyntheticReader:
    """One reader.

    true_group: index in TRUE_GROUPS. clicks [H, D]. Articles seen during training, and articles seen later. unread: the
    features [R, F] of the latter on a device without clicks.
    """

    true_group: int
    clicks: Vectors
    before: SeenArticles
    later: SeenArticles
    unread: Vectors


@dataclass(frozen=True)
class SyntheticSamples:
    """A `SampleSource` of what the reader opened, and what it saw and skipped."""

    reader: SyntheticReader
    news: Vectors

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Draw fresh samples. Raises ValueError for features other than a device's."""
        if features != tuple(FEATURES):
            raise ValueError(f"features: {', '.join(FEATURES)}, got {features}")
        met = self.reader.before
        positives = rng.permutation(np.flatnonzero(met.opened))[:limit]
        left = np.flatnonzero(met.opened == 0)
        places = np.concatenate([positives[:, None], rng.choice(left, size=(len(positives), negatives))], axis=1)
        clicks, mask = left_padded(self.reader.clicks)
        count = len(positives)
        return Samples(
            np.repeat(clicks, count, axis=0),
            np.repeat(mask, count, axis=0),
            self.news[met.rows[places]],
            met.features[places],
        )


@dataclass(frozen=True)
class SyntheticPopulation:
    """A `Population`: training readers, who are evaluated as warm readers, and the requested number of cold readers."""

    news: Vectors
    warm: Sequence[SyntheticReader]
    cold: Sequence[SyntheticReader]
    model: nn.Module

    @classmethod
    def drawn(
        cls,
        pool: Pool,
        now: datetime,
        model: nn.Module,
        rng: np.random.Generator,
        *,
        warm: int,
        cold: int,
        opposite: bool,
    ) -> SyntheticPopulation:
        """Draw a population, half its readers of each kind.

        opposite: whether their tastes for recency are opposite.
        """
        place = PoolMoment.of(pool, now)
        readers = [place.reader(number % 2, opposite, rng) for number in range(warm + cold)]
        return cls(pool.vectors, readers[:warm], readers[warm:], model)

    def without_clicks(self) -> SyntheticPopulation:
        """Return the same readers on devices without clicks: the evaluation articles are the first they see."""

        def emptied(readers: Sequence[SyntheticReader]) -> list[SyntheticReader]:
            return [
                replace(each, clicks=each.clicks[:0], later=replace(each.later, features=each.unread))
                for each in readers
            ]

        return replace(self, warm=emptied(self.warm), cold=emptied(self.cold))

    @property
    def readers(self) -> int:
        return len(self.warm)

    def source(self, reader: int) -> SyntheticSamples:
        return SyntheticSamples(self.warm[reader], self.news)

    def clicks(self, reader: int) -> Vectors:
        return self.warm[reader].clicks

    @property
    def judges(self) -> Sequence[SyntheticReader]:
        """Return all readers: the training readers, then the cold ones."""
        return (*self.warm, *self.cold)

    @property
    def judging(self) -> Sequence[Vectors]:
        return [reader.clicks for reader in self.judges]

    @property
    def population(self) -> Rows:
        """Return the population of each evaluated reader, int64 [m]."""
        return np.array([reader.true_group for reader in self.judges], dtype=np.int64)

    def aucs(self, choice: ModelChoice) -> Floats:
        """Return each evaluated reader's AUC on articles seen later, float64 [m]."""
        judges, found = self.judges, np.zeros(len(self.judges))
        order = np.argsort(choice.which, kind="stable")
        for used, places in groupby(order.tolist(), key=lambda place: int(choice.which[place])):
            values = {name: torch.from_numpy(np.asarray(each)) for name, each in choice.models[used].items()}
            mine = list(places)
            for start in range(0, len(mine), CHUNK):
                rows = mine[start : start + CHUNK]
                for row, scores in zip(rows, self._scores([judges[row] for row in rows], values), strict=True):
                    found[row] = auc(judges[row].later.opened, scores)
        return found

    def _scores(self, readers: Sequence[SyntheticReader], values: dict[str, torch.Tensor]) -> Vectors:
        padded = [left_padded(reader.clicks) for reader in readers]
        inputs = (
            np.concatenate([clicks for clicks, _ in padded]),
            np.concatenate([mask for _, mask in padded]),
            np.stack([self.news[reader.later.rows] for reader in readers]),
            np.stack([reader.later.features for reader in readers]),
        )
        with torch.inference_mode():
            found = call(self.model, "forward", values, [torch.from_numpy(each) for each in inputs])
        scores: Vectors = found.numpy()
        return scores


@dataclass(frozen=True)
class PoolMoment:
    """A pool at one moment, and how likely each article is opened."""

    pool: Pool
    now: datetime
    meeting: Floats
    fresh: Floats
    examples: Sequence[NewsCard]
    topics: Rows
    """fresh [n]: the feature `recency`, 1 for the newest articles. topics [n]: index of each article's topic in
    `examples`, which has one card per topic, since tastes depend on the topic alone.
    """

    @classmethod
    def of(cls, pool: Pool, now: datetime) -> PoolMoment:
        fresh = recency(Candidates(pool.cards, pool.vectors, ""), now, RECENCY_HALF_LIFE_HOURS)
        names = [f"{card.section}/{card.topic}" for card in pool.cards]
        _, first, topics = np.unique(names, return_index=True, return_inverse=True)
        return cls(pool, now, pool.meeting(now), fresh, [pool.cards[row] for row in first], topics)

    def reader(self, true_group: int, opposite: bool, rng: np.random.Generator) -> SyntheticReader:
        """Draw a reader who opens some but not all articles, before and later.

        Redraws until there is one.
        """
        cards = [card for card in self.examples if card.section in TRUE_GROUPS[true_group]]
        while True:
            interests = SimulatedInterests.drawn(cards, rng)
            chances = np.array([interests.chance_at_head(card) for card in self.examples])[self.topics]
            if opposite:
                chances = chances * (self.fresh, 1 - self.fresh)[true_group]
            clicked = self._some(self.meeting * chances, CLICKS, rng)
            met = self._some(np.where(np.isin(np.arange(len(chances)), clicked), 0.0, self.meeting), MET, rng)
            opened = (rng.random(MET) < chances[met]).astype(np.int64)
            parts = opened[:TRAINED_ON], opened[TRAINED_ON:]
            if all(0 < part.sum() < len(part) for part in parts):
                break
        features = self._features(clicked, met)
        return SyntheticReader(
            true_group,
            self.pool.vectors[clicked],
            SeenArticles(met[:TRAINED_ON], parts[0], features[:TRAINED_ON]),
            SeenArticles(met[TRAINED_ON:], parts[1], features[TRAINED_ON:]),
            self._features(clicked[:0], met[TRAINED_ON:]),
        )

    def _features(self, clicked: Rows, met: Rows) -> Vectors:
        """Return the features as a device computes them; without counts, popularity is 0."""
        candidates = Candidates(tuple(self.pool.cards[row] for row in met), self.pool.vectors[met], "")
        clicks = [self.pool.cards[row] for row in clicked]
        return feature_columns(
            tuple(FEATURES), feature_context_at(candidates, clicks, self.now, RECENCY_HALF_LIFE_HOURS)
        )

    def _some(self, weights: Floats, count: int, rng: np.random.Generator) -> Rows:
        return np.asarray(rng.choice(len(weights), size=count, replace=False, p=weights / weights.sum()), np.int64)


MET = TRAINED_ON + JUDGED_ON


def purity_of_groups(groups: Rows, population: Rows) -> float:
    """Return the share of readers whose group consists mostly of their own population; one half without information."""
    own = sum(np.bincount(population[groups == group], minlength=len(TRUE_GROUPS)).max() for group in np.unique(groups))
    return float(own / len(population))
