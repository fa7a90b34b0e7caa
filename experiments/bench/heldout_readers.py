"""Readers with known interests who evaluate releases and never take part in a round.

They like articles as the fleet's readers do (device_app/fleet/simulated_interests.py) and never change: the same
clicks, candidates and later clicks evaluate every release, so that only the releases differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.feature_context import feature_context_at
from device_app.fleet.simulated_interests import SimulatedInterests
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.reporter import user_vector
from device_app.ranking.ranker import FeatureContext, Ranker
from models.metrics import auc
from protocol.news import NewsCard

CLICKS = 12
MET = 300
"""Articles that a held-out reader rates for the AUC."""
MEETING_HALF_LIFE_HOURS = 24.0
"""Hours of age that halve the probability that a reader sees an article, as in the first prior."""
RECENCY_HALF_LIFE_HOURS = 48.0
"""Half-life of the feature `recency`, the devices' default."""

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Pool:
    """n cards with their vectors [n, D]."""

    cards: tuple[NewsCard, ...]
    vectors: NDArray[np.float32]

    def meeting(self, now: datetime) -> Floats:
        """Return the probability that a reader sees each article next, [n]; depends on age only, sums to 1."""
        ages_hours = np.array([(now - card.published_at).total_seconds() for card in self.cards]) / 3_600
        weights = 0.5 ** (np.maximum(ages_hours, 0.0) / MEETING_HALF_LIFE_HOURS)
        return np.asarray(weights / weights.sum(), dtype=np.float64)


@dataclass(frozen=True)
class HeldoutReader:
    """One reader, who does not change.

    Args:
        clicks: vectors [H, D].
        known: the features of all n articles that its ranker may use besides those clicks.
        met: rows [R] of articles not seen before.
        opened: [R], 1 where it would open the article at the top of a page; drawn once.
        later: [n], the probability that its next click is each article; sums to 1, 0 for the clicks.
    """

    clicks: NDArray[np.float32]
    known: FeatureContext
    met: Rows
    opened: Rows
    later: Floats


def heldout_readers(pool: Pool, count: int, now: datetime, rng: np.random.Generator) -> list[HeldoutReader]:
    """Draw readers one after another. A reader who would open none or all of the articles seen is drawn again."""
    found: list[HeldoutReader] = []
    candidates = Candidates(pool.cards, pool.vectors, "")
    meeting = pool.meeting(now)
    while len(found) < count:
        interests = SimulatedInterests.drawn(pool.cards, rng)
        chances = np.array([interests.chance_at_head(card) for card in pool.cards])
        clicks = _some(meeting * chances, CLICKS, rng)
        rest = meeting.copy()
        rest[clicks] = 0.0
        met = _some(rest, MET, rng)
        opened = (rng.random(MET) < chances[met]).astype(np.int64)
        if not 0 < opened.sum() < MET:
            continue
        clicked = [pool.cards[row] for row in clicks]
        later = rest * chances
        found.append(
            HeldoutReader(
                pool.vectors[clicks],
                feature_context_at(candidates, clicked, now, RECENCY_HALF_LIFE_HOURS),
                met,
                opened,
                later / later.sum(),
            )
        )
    return found


@dataclass(frozen=True)
class ServedRanking:
    """How a release serves held-out readers.

    Args:
        ranker: the release's ranker.
        popularity: [n], by the private counts so far.
        prototypes: [K, D] of the codebook for reports.
        mechanism: draws a report.
        lists: the server's answer to each of the K reports, rows of the pool, best first.
    """

    ranker: Ranker
    popularity: Floats
    prototypes: NDArray[np.float32]
    mechanism: RandomisedCode
    lists: Sequence[Rows]


@dataclass(frozen=True)
class Marks:
    """Scores of every held-out reader, [readers].

    AUC of the ranker; the share of its later clicks within the first `depth` of the server's answer; and within the
    best `depth` of that answer by its own ranker.
    """

    auc: Floats
    answered: Floats
    ranked: Floats


def judge(readers: Sequence[HeldoutReader], pool: Pool, served: ServedRanking, depth: int = 100) -> Marks:
    """Evaluate readers; the expectation over randomised response is exact, so shares contain no noise."""
    mechanism = served.mechanism
    union = np.unique(np.concatenate(served.lists))
    aucs, answered, ranked = [], [], []
    for reader in readers:
        rows = np.concatenate([reader.met, union])
        seen = _of(reader.known, rows, served.popularity)
        scores = served.ranker.score(reader.clicks, pool.vectors[rows], seen)
        aucs.append(auc(reader.opened, scores[:MET]))
        score_of = dict(zip(union.tolist(), scores[MET:].tolist(), strict=True))
        sent = np.full(mechanism.size, (1 - mechanism.truth) / (mechanism.size - 1))
        sent[nearest(served.prototypes, user_vector(reader.clicks))] = mechanism.truth
        answered.append(sent @ [reader.later[rows[:depth]].sum() for rows in served.lists])
        ranked.append(sent @ [reader.later[_best(rows, score_of, depth)].sum() for rows in served.lists])
    return Marks(np.array(aucs), np.array(answered), np.array(ranked))


def _best(rows: Rows, score_of: Mapping[int, float], depth: int) -> Rows:
    scores = np.array([score_of[row] for row in rows.tolist()])
    return rows[np.argsort(-scores, kind="stable")[:depth]]


def _of(known: FeatureContext, rows: Rows, popularity: Floats) -> FeatureContext:
    return replace(
        known,
        sections=known.sections[rows],
        topics=known.topics[rows],
        recency=known.recency[rows],
        popularity=popularity[rows],
    )


def _some(weights: Floats, count: int, rng: np.random.Generator) -> Rows:
    """Draw distinct rows, with probabilities proportional to their weights."""
    return np.asarray(rng.choice(len(weights), size=count, replace=False, p=weights / weights.sum()), dtype=np.int64)
