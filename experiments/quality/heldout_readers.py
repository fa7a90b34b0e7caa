"""Readers with known interests who never take part in a round: what releases are judged by.

They like news as the readers of the fleet do (device_app/fleet/simulated_interests.py), and then stand still: the same
clicks, the same candidates and the same later clicks judge every release, so that two releases differ by themselves
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.feature_context import feature_context_at
from device_app.fleet.simulated_interests import SimulatedInterests
from device_app.privacy.mechanisms.code import RandomisedCode, nearest
from device_app.privacy.modes.mode import user_vector
from device_app.ranking.features import FeatureContext
from device_app.ranking.ranker import Ranker
from device_app.wire.news import NewsCard
from models.metrics import auc

CLICKS = 12
MET = 300
"""News that a held-out reader is asked about for the AUC."""
MEETING_HALF_LIFE_HOURS = 24.0
"""How likely a reader is to meet a piece of news halves with so many hours of its age, as the first prior has it."""
RECENCY_HALF_LIFE_HOURS = 48.0
"""Of the feature, as devices have it by default."""

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Pool:
    """n cards with their vectors [n, D]."""

    cards: tuple[NewsCard, ...]
    vectors: NDArray[np.float32]

    def meeting(self, now: datetime) -> Floats:
        """[n]: the chance that what a reader meets next is each; by age alone, adds up to 1."""
        ages_hours = np.array([(now - card.published_at).total_seconds() for card in self.cards]) / 3_600
        weights = 0.5 ** (np.maximum(ages_hours, 0.0) / MEETING_HALF_LIFE_HOURS)
        return np.asarray(weights / weights.sum(), dtype=np.float64)


@dataclass(frozen=True)
class HeldoutReader:
    """One reader, standing still.

    Args:
        clicks: vectors [H, D].
        known: what its ranker may know of all n news of the pool beside those clicks.
        met: rows [R] of news it never saw.
        opened: [R], 1 where it would open it at the head of a page; drawn once.
        later: [n], the chance that its next click is each piece of news; adds up to 1, 0 for the clicks.
    """

    clicks: NDArray[np.float32]
    known: FeatureContext
    met: Rows
    opened: Rows
    later: Floats


def heldout_readers(pool: Pool, count: int, now: datetime, rng: np.random.Generator) -> list[HeldoutReader]:
    """Drawn one after another; whoever would open none or all of what it meets is drawn again."""
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
    """What a release serves held-out readers with.

    Args:
        ranker: of the release.
        popularity: [n], by the private counts until then.
        prototypes: [K, D] of the codebook that reports are made by.
        mechanism: how a report is drawn.
        lists: the server's answer to each of the K reports, rows of the pool, best first.
    """

    ranker: Ranker
    popularity: Floats
    prototypes: NDArray[np.float32]
    mechanism: RandomisedCode
    lists: Sequence[Rows]


@dataclass(frozen=True)
class Marks:
    """Of every held-out reader, [readers]: AUC of the ranker; the share of its later clicks within the first `depth` of
    the server's answer; and within the best `depth` of that answer by its own ranker."""

    auc: Floats
    answered: Floats
    ranked: Floats


def judge(readers: Sequence[HeldoutReader], pool: Pool, served: ServedRanking, depth: int = 100) -> Marks:
    """The expectation over what randomised response sends is exact: no draw of noise is in the shares."""
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
    """Distinct rows, likelier by weight."""
    return np.asarray(rng.choice(len(weights), size=count, replace=False, p=weights / weights.sum()), dtype=np.int64)
