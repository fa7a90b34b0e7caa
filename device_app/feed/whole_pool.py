"""All news that is on this device: what its lists brought, and the copy of the pool where one is kept. Nothing is asked
of anybody for it, so that nobody learns which topic was opened or what was searched for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from device_app.feed.broadcast import PoolBroken
from device_app.feed.candidates import Candidates, unit
from device_app.feed.exclusions import one_of_each
from device_app.feed.held_lists import HeldLists
from device_app.feed.kinship import Kinship, floor_of
from device_app.feed.preference_reader import named
from device_app.feed.serving import Serving
from device_app.store.news import Naming
from device_app.store.rows import to_us
from device_app.store.search_index import WordHit
from device_app.stores import DeviceStores
from device_app.wire.news import NewsCard

SEARCH_PAGE = 50
FRESH_GAIN, FRESH_DAYS = 0.5, 7.0
"""What was published now counts half as much again as its words alone, and half of that is gone after so many days."""
NEAR, NEAR_LEADS, NEAR_LOOKED_AT = 6, 5, 60
"""Stories close in meaning, how many of the best results they may be close to, and how many are looked at for them."""
LISTED = 300
"""Most stories of one topic, section or publisher, the newest."""


@dataclass(frozen=True)
class SearchResults:
    """A page of results, best first. total: stories found. near: stories without the words that are close in meaning
    to one of the best results; on the first page alone. made_at, new: as of a list that is held (`feed.held_lists`)."""

    cards: tuple[NewsCard, ...]
    total: int
    page: int
    made_at: datetime
    near: tuple[NewsCard, ...] = ()
    new: int = 0

    @property
    def upto(self) -> int:
        """How many results this page and those before it show."""
        return min(self.page * SEARCH_PAGE, self.total)


class WholePool:
    """Lists news by what names it. Safe for several threads."""

    def __init__(self, stores: DeviceStores, serving: Serving, lists: HeldLists, clock: Callable[[], datetime]) -> None:
        self._stores, self._serving, self._lists, self._clock = stores, serving, lists, clock

    def size(self) -> int | None:
        """How many news the copy of the pool holds; None where none is kept that the release in use can read."""
        release, kept = self._serving.manifest(), self._stores.pool.current()
        ready = release is not None and self._serving.feed_context.recall.broadcast.ready(release.encoder)
        return kept.listing.count if ready and kept is not None else None

    def is_unread(self) -> bool:
        """Whether a copy is kept that the release in use can't read: it is being replaced, and no list without it is to
        stay."""
        return self.size() is None and self._stores.pool.current() is not None

    def named(self, kind: Naming, name: str) -> list[NewsCard]:
        """The newest news of a topic, section or publisher, newest first, without what the reader hides otherwise."""
        blocked = named(self._stores.stances.blocked())
        found = {card.id: card for card in self._pool_named(kind, name)}
        found |= {card.id: card for card in self._stores.news.cards(self._stores.news.named(kind, name, LISTED))}
        shown = [
            card
            for card in found.values()
            if (kind == "topic" or card.topic not in blocked.topics)
            and (kind == "section" or card.section not in blocked.sections)
            and (kind == "publisher" or card.publisher not in blocked.publishers)
        ]
        return sorted(shown, key=lambda card: (card.published_at, card.id), reverse=True)[:LISTED]

    def texts(self) -> int:
        """How many news its lists have brought to this device, with their texts or without."""
        return self._stores.news.count()

    def hits(self, text: str) -> list[WordHit]:
        """All news that has every word of `text`, the most relevant and most recent first, each once."""
        found: dict[str, WordHit] = {}
        pool = [] if self.size() is None else self._stores.pool_index.hits(text)
        for hit in (*self._stores.search_index.hits(text), *pool):
            known = found.get(hit.id)
            if known is None or hit.relevance > known.relevance:
                found[hit.id] = hit
        now_us = to_us(self._clock())
        return sorted(found.values(), key=lambda hit: (-_score(hit, now_us), -hit.published_us, hit.id))

    def search(self, text: str, page: int = 1) -> SearchResults:
        """A page of the news that has every word of `text`, laid out (see `show`), out of the results that are held."""
        with self._lists.still():
            return self._search(text, page)

    def _search(self, text: str, page: int) -> SearchResults:
        self._stores.searches.looked(text, self._clock())
        held = self._lists.hold_found(text, [hit.id for hit in self.hits(text)], whole=not self.is_unread())
        cards = self._cards(held.ids[(page - 1) * SEARCH_PAGE : page * SEARCH_PAGE])
        self.show(cards)
        near = self._near(cards[:NEAR_LEADS], set(held.ids)) if page == 1 else []
        if near:
            near = self._wanted(self._cards(self._lists.hold_found(text, [card.id for card in near], "near").ids))
        self.show(near)
        return SearchResults(tuple(cards), len(held.ids), page, held.made_at, tuple(near), held.new)

    def show(self, cards: Sequence[NewsCard]) -> None:
        """These are laid out: what of them only the pool's copy has goes to the other news, with its vector as coded,
        so that it can be opened and reacted to as any. Inside `HeldLists.still`, with what found them."""
        release = self._serving.manifest()
        missing = set(self._stores.news.missing([card.id for card in cards]))
        if release is None or not missing or self.is_unread():
            return
        taken = [card for card in cards if card.id in missing]
        broadcast = self._serving.feed_context.recall.broadcast
        try:
            vectors = broadcast.coded([card.id for card in taken], release.encoder, release.dimensions)
        except PoolBroken:
            broadcast.discard()
            return
        self._stores.news.put(taken, vectors, release.encoder, self._clock())

    def _pool_named(self, kind: Naming, name: str) -> list[NewsCard]:
        return [] if self.size() is None else self._stores.pool.named(kind, name, LISTED)

    def _cards(self, ids: Sequence[str]) -> list[NewsCard]:
        cards = {card.id: card for card in self._stores.news.cards(ids)}
        places = self._stores.pool.places([news_id for news_id in ids if news_id not in cards])
        cards |= {card.id: card for card in self._stores.pool.cards(places.values())}
        return [cards[news_id] for news_id in ids if news_id in cards]

    def _near(self, leads: Sequence[NewsCard], found: set[str]) -> list[NewsCard]:
        """News of the pool's copy that one of `leads` is close to by topic or likeness (`feed.kinship`), the most alike
        first."""
        release = self._serving.manifest()
        if release is None or not leads or self.size() is None:
            return []
        context = self._serving.feed_context
        default_list = context.default_list.candidates(release.encoder, release.dimensions)
        floor = floor_of(release, default_list)
        kinship = Kinship(default_list, floor)
        here, vectors = self._stores.news.vectors([card.id for card in leads], release.encoder)
        near: dict[str, tuple[float, NewsCard]] = {}
        for row in np.flatnonzero(here).tolist():
            try:
                asked = unit(vectors[row : row + 1])[0]
                around = context.recall.broadcast.find(asked, NEAR_LOOKED_AT, release.encoder, priors=False)
            except PoolBroken:
                context.recall.broadcast.discard()
                return []
            for kin in kinship.of(leads[row], vectors[row], around.cards, around.vectors):
                card = around.cards[kin.row]
                # Two people may share a name: by itself it says nothing of what a story means.
                by_meaning = kin.tie != "name" or (floor is not None and kin.cosine > floor)
                if by_meaning and card.id not in found and kin.cosine > near.get(card.id, (-1.0, card))[0]:
                    near[card.id] = kin.cosine, card
        return self._wanted([card for _, card in sorted(near.values(), key=lambda one: (-one[0], one[1].id))])

    def _wanted(self, cards: Sequence[NewsCard]) -> list[NewsCard]:
        """The first of these that the reader hides by no name and has not waved away, one a story."""
        blocked = self._stores.stances.blocked()
        less = {one.news_id for one in self._stores.feedback.reactions("less")}
        left = tuple(
            card
            for card in cards
            if card.id not in less
            and not blocked & {("topic", card.topic), ("section", card.section), ("publisher", card.publisher)}
        )
        if not left:
            return []
        single = one_of_each(
            Candidates(left, np.zeros((len(left), 1), np.float32), ""), -np.arange(len(left), dtype=float)
        )
        return [card for card, one in zip(left, single.tolist(), strict=True) if one][:NEAR]


def _score(hit: WordHit, now_us: int) -> float:
    age_days = max(0.0, (now_us - hit.published_us) / (timedelta(days=1) / timedelta(microseconds=1)))
    return float(hit.relevance * (1 + FRESH_GAIN * 0.5 ** (age_days / FRESH_DAYS)))
