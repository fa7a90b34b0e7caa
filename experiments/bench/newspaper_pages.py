"""Builds simulated readers' pages from the generated newspaper with the product's ranking, slots and reasons.

No server takes part. Candidates are the default list, what a device finds in its copy of the pool, and the answer to a
report whose noise drew another reader's interest, the worst possible answer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from backend.news.pool_reading import PoolRow
from backend.recall.catalogue import NewsColumns
from backend.recall.default_list import default_order
from device_app.feed.build import scored
from device_app.feed.candidates import Candidates, unit
from device_app.feed.exclusions import allowed
from device_app.feed.item import PageSlot, Reason
from device_app.feed.page_order import placed
from device_app.feed.preference_reader import UserPreferences
from device_app.feed.reasons import reasons
from device_app.feed.scores import age_hours
from device_app.feed.similarity import SimilarityRule
from device_app.ranking.ranker import Ranker
from device_app.ranking.session import GraphSession
from device_app.settings import FeedSettings
from models.shapes import NEWS_DIM
from newsroom.edition import named_edition
from protocol.news import NewsCard
from protocol.similarity import similarity_floor

NOW = datetime(2026, 11, 20, 18, tzinfo=UTC)
ARTICLES = 6_000
PAGE = 30

DEFAULT_LIST, RECALLED = 600, 400
LOOKED_AT = 15
"""Cards that a reader sees: the upper half of a page."""


@dataclass(frozen=True)
class NewspaperPool:
    """n cards with vectors [n, D] and names [n], the rows of the default list, and the release's similarity floor."""

    cards: tuple[NewsCard, ...]
    vectors: NDArray[np.float32]
    names: tuple[frozenset[str], ...]
    listed: NDArray[np.intp]
    floor: float | None

    @classmethod
    def of(
        cls, cards: Sequence[NewsCard], vectors: NDArray[np.float32], names: Sequence[frozenset[str]]
    ) -> NewspaperPool:
        """Return the pool of these cards, with its default list and similarity floor."""
        rows = [PoolRow(number=number, duplicate_of=None, **card.model_dump()) for number, card in enumerate(cards)]
        listed = np.array(default_order(NewsColumns.of(rows), NOW, DEFAULT_LIST), dtype=np.intp)
        return cls(tuple(cards), unit(vectors), tuple(names), listed, similarity_floor(vectors))

    def rows(self, *, section: str | None = None, topic: str | None = None) -> list[int]:
        return [
            row
            for row, card in enumerate(self.cards)
            if section in (None, card.section) and topic in (None, card.topic)
        ]


def newspaper_pool(*, whole: Collection[str] = (), others: int | None = None, seed: int = 7) -> NewspaperPool:
    """Return the edition of the 14 days before NOW, with its real vectors (computed once and cached).

    whole: sections taken entirely. others: number of other articles, spread evenly over the days; None: all of them.
    """
    from experiments.datasets.titles import product_vectors, title_vectors  # imports torch

    edition = [(named.article, named.names) for named in named_edition(NOW, seed=seed, articles=ARTICLES)]
    if others is not None:
        rest = [pair for pair in edition if pair[0].section not in whole]
        kept = {rest[row][0].id for row in np.linspace(0, len(rest) - 1, others).astype(int)}
        edition = [pair for pair in edition if pair[0].section in whole or pair[0].id in kept]
    printed = NewsCard.model_fields.keys() - {"dated", "also"}
    cards = [NewsCard.model_validate({name: getattr(item, name) for name in printed}) for item, _ in edition]
    vectors = product_vectors(title_vectors([card.title for card in cards]), NEWS_DIM)
    return NewspaperPool.of(cards, vectors, [names for _, names in edition])


def default_ranker() -> Ranker:
    """Return the default ranker of a first release, exported as for a release."""
    from exporters.package import export_ranker
    from models.rankers import DEFAULT, RANKERS
    from models.user.candidate_attention import FeatureRanker

    model = RANKERS[DEFAULT].build(NEWS_DIM)
    assert isinstance(model, FeatureRanker)
    exported = export_ranker(model)
    graph = GraphSession(exported.graphs["score"], exported.weights)
    return Ranker(graph, name=DEFAULT, features=model.features)


@dataclass(frozen=True)
class PageCard:
    row: int
    slot: PageSlot
    reason: Reason


@dataclass(frozen=True)
class Reader:
    """A simulated reader: rows that were read (in order), viewed on a page (once per page), liked and marked "Less".

    has_pool: whether the device has its copy of the pool.
    """

    pool: NewspaperPool
    ranker: Ranker
    settings: FeedSettings = field(default_factory=FeedSettings)
    picked: frozenset[str] = frozenset()
    read: tuple[int, ...] = ()
    seen: tuple[int, ...] = ()
    liked: tuple[int, ...] = ()
    less: tuple[int, ...] = ()
    has_pool: bool = True

    def reads(self, *rows: int) -> Reader:
        """Return the same reader after opening these stories."""
        return replace(self, read=self.read + rows, seen=self.seen + rows)

    def looks_at(self, page: Sequence[PageCard], cards: int = LOOKED_AT) -> Reader:
        """Return the same reader after seeing the first cards of a page."""
        return replace(self, seen=self.seen + tuple(shown.row for shown in page[:cards]))

    def page(self, seed: int) -> list[PageCard]:
        """Build a page now."""
        user_preferences = self._preferences()
        rows = self._offered(seed)
        rows = rows[allowed(self._candidates(rows), user_preferences)]
        candidates = self._candidates(rows)
        views = Counter(self.seen)
        times_seen = np.array([views[row] for row in rows.tolist()], dtype=np.float64)
        score = scored(self.ranker, candidates, user_preferences, NOW, self.settings, times_seen=times_seen)
        similarity = SimilarityRule(candidates, self.pool.floor)
        page = placed(
            candidates,
            score.total,
            user_preferences,
            NOW,
            self.settings,
            size=PAGE,
            chance=random.Random(seed),
            similarity=similarity,
            seen=times_seen > 0,
            steady=score.total - score.terms["reactions"],
        )
        recent = age_hours(candidates, NOW) <= self.settings.fresh_hours
        page_reasons = reasons(candidates, page, user_preferences, score, similarity, recent)
        return [
            PageCard(int(rows[place.row]), place.slot, reason) for place, reason in zip(page, page_reasons, strict=True)
        ]

    def _offered(self, seed: int) -> NDArray[np.intp]:
        """Return rows of the last answer, the copy of the pool, and the default list, each row once."""
        if not self.read:
            return self.pool.listed
        vectors = self.pool.vectors
        wanted = [vectors[np.random.default_rng(seed).integers(len(vectors))]]
        if self.has_pool:
            wanted.append(vectors[list(self.read)].mean(axis=0))
        found = [np.argsort(-(vectors @ each), kind="stable")[:RECALLED] for each in wanted]
        rows = np.concatenate([*found, self.pool.listed])
        return rows[np.sort(np.unique(rows, return_index=True)[1])]

    def _candidates(self, rows: NDArray[np.intp]) -> Candidates:
        return Candidates(tuple(self.pool.cards[row] for row in rows), self.pool.vectors[rows], "newspaper")

    def _preferences(self) -> UserPreferences:
        cards, vectors = self.pool.cards, self.pool.vectors
        return UserPreferences(
            clicks=tuple(cards[row] for row in self.read),
            click_vectors=vectors[list(self.read)],
            click_interests=("",) * len(self.read),
            liked_cards=tuple(cards[row] for row in self.liked),
            liked=vectors[list(self.liked)],
            disliked=vectors[list(self.less)],
            read=frozenset(cards[row].id for row in self.read),
            read_events=frozenset(story for row in self.read if (story := cards[row].story)),
            disliked_ids=frozenset(cards[row].id for row in self.less),
            chosen_sections=self.picked,
        )
