"""Searches and lists all articles on this device: those of its lists and of the pool's copy.

Nothing is requested, so nobody learns which topic was opened or what was searched for.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from device_app.feed.broadcast import PoolBroken
from device_app.feed.candidates import Candidates, unit
from device_app.feed.exclusions import one_of_each
from device_app.feed.held_lists import HeldLists
from device_app.feed.related_words import terms_of
from device_app.feed.serving import Serving
from device_app.feed.similarity import SimilarityRule, floor_of, is_by_meaning
from device_app.store.news import Naming, report_of
from device_app.store.rows import to_us
from device_app.store.searches import WordHit, WordMatch
from device_app.stores import DeviceStores
from protocol.news import NewsCard

SEARCH_PAGE = 50
FRESH_GAIN, FRESH_DAYS = 0.5, 7.0
"""Bonus of an article published now on its text relevance, and its half-life in days."""
NEAR, NEAR_LEADS, NEAR_LOOKED_AT = 10, 5, 60
"""Similar stories: how many are shown, for how many best results, out of how many nearest."""
RELATED_WEIGHT = 0.9
"""Weight of a related word; the word itself has 1."""
TOPIC_WEIGHT, TOPIC_HALF, TOPIC_PRIOR = 2.0, 0.3, 3
"""Parameters of a topic's weight. A topic counts like two words if all its stories have the word, and half as much if
0.3 of them do. TOPIC_PRIOR stories without the word are added, so that a small topic proves little.
"""
EACH_STORY = 4
"""Articles fetched per story shown, since an event may have several and the reader may hide some."""
MEANING_FLOOR = 0.275
"""Minimum score of a story that lacks some of the words. 25 queries without an answer scored at most 0.27."""
ROUNDED = 1e6
"""Scores are rounded to 1 / ROUNDED, so that Python and browser devices find the same ties."""


@dataclass(frozen=True)
class SearchResults:
    """A page of results, best first.

    total: stories found. near: stories that lack some of the search words but have related ones, or are similar to one
    of the best results; first page only. made_at, new: like those of a held list (`feed.held_lists`). hidden: how many
    more a mute rule hides.
    """

    cards: tuple[NewsCard, ...]
    total: int
    page: int
    made_at: datetime
    near: tuple[NewsCard, ...] = ()
    new: int = 0
    hidden: int = 0

    @property
    def upto(self) -> int:
        """How many results this page and the previous ones show."""
        return min(self.page * SEARCH_PAGE, self.total)


class WholePool:
    """Lists articles by topic, section, publisher or words. Thread-safe."""

    def __init__(self, stores: DeviceStores, serving: Serving, lists: HeldLists, clock: Callable[[], datetime]) -> None:
        self._stores, self._serving, self._lists, self._clock = stores, serving, lists, clock

    def size(self) -> int | None:
        """Return the size of the pool's copy; None if there is none that the current release can read."""
        release, kept = self._serving.manifest(), self._stores.pool.current()
        ready = release is not None and self._serving.feed_context.recall.broadcast.ready(release.encoder)
        return kept.listing.count if ready and kept is not None else None

    def is_unread(self) -> bool:
        """Return whether the current release can't read the stored copy.

        Such a copy is being replaced, and no list made without it should be stored.
        """
        return self.size() is None and self._stores.pool.current() is not None

    def named(self, kind: Naming, name: str) -> list[str]:
        """Return the ids of all articles of a topic, section or publisher, newest first.

        Leaves out what the reader hides by another name. Of the reports of one event only the newest is listed; a
        publisher's list has all.
        """
        hidden = [one for one in self._stores.stances.blocked() if one[0] != kind]
        return self._readable(self._stores.articles.by_name([(kind, name)], hidden, events=kind != "publisher"))

    def following(self) -> list[str]:
        """Return the ids of all articles that the reader follows by a name, newest first, without what is hidden."""
        stances = self._stores.stances
        return self._readable(self._stores.articles.by_name(stances.followed(), stances.blocked(), events=True))

    def texts(self) -> int:
        """Return how many articles from lists are on this device, with or without texts."""
        return self._stores.news.count()

    def hits(self, text: str) -> list[WordHit]:
        """Return all articles that contain every word of `text`, the most relevant and recent first."""
        found: dict[str, WordHit] = {}
        pool = [] if self.size() is None else self._stores.pool_index.hits(text)
        for hit in (*self._stores.search_index.hits(text), *pool):
            known = found.get(hit.id)
            if known is None or hit.relevance > known.relevance:
                found[hit.id] = hit
        now_us = to_us(self._clock())
        return sorted(found.values(), key=lambda hit: (-_score(hit, now_us), -hit.published_us, hit.id))

    def by_meaning(self, text: str) -> dict[str, float]:
        """Return how well articles answer a search, by words, related words and topics: 0 to 1, best first.

        Only articles with one of the words, or of their related words, are in it. Call it after `hits`. A topic's
        stories share what is said of any of them: cluster-based smoothing (Liu and Croft, SIGIR 2004), with the
        publisher's topics as clusters.
        """
        sizes = self._stores.articles.topic_sizes()
        stories, parts = sum(sizes.values()), []
        found: dict[str, WordMatch] = {}
        for term in terms_of(text):
            own = self._matching(term.own)
            related = {key: match for key, match in self._matching(term.related).items() if key not in own}
            found |= own | related
            weight = math.log(1 + stories / (len(own) + RELATED_WEIGHT * len(related) + 0.5))
            have, have_related = (Counter(match.topic for match in each.values()) for each in (own, related))
            topics = {
                topic: (have[topic] + RELATED_WEIGHT * have_related[topic]) / (sizes.get(topic, 0) + TOPIC_PRIOR)
                for topic in have | have_related
                if topic[1]
            }
            parts.append((weight, own, related, topics))
        whole = (1 + TOPIC_WEIGHT) * sum(weight for weight, *_ in parts)
        scores: dict[str, float] = {}
        for news_id, match in found.items():
            score = 0.0
            for weight, own, related, topics in parts:
                share = topics.get(match.topic, 0.0)
                word = 1.0 if news_id in own else RELATED_WEIGHT if news_id in related else 0.0
                score += weight * (word + TOPIC_WEIGHT * share / (share + TOPIC_HALF))
            scores[news_id] = math.floor(score / whole * ROUNDED + 0.5) / ROUNDED
        return {
            key: scores[key] for key in sorted(scores, key=lambda key: (-scores[key], -found[key].published_us, key))
        }

    def _matching(self, expression: str) -> dict[str, WordMatch]:
        if not expression:
            return {}
        pool = [] if self.size() is None else self._stores.pool_index.matching(expression)
        return {match.id: match for match in (*self._stores.search_index.matching(expression), *pool)}

    def search(self, text: str, page: int = 1, *, hidden: bool = False) -> SearchResults:
        """Return a page of the articles that contain every word of `text`, the best answers first, and `show` it.

        The page is taken from the held results. hidden: also those that a mute rule hides.
        """
        with self._lists.still():
            return self._search(text, page, hidden)

    def _search(self, text: str, page: int, with_hidden: bool) -> SearchResults:
        self._stores.searches.looked(text, self._clock())
        hits = [hit.id for hit in self.hits(text)]
        meaning = self.by_meaning(text)
        hits.sort(key=lambda news_id: -meaning.get(news_id, 0.0))  # stable: equal ones stay as `hits` has them
        held = self._lists.hold_found(text, hits, whole=not self.is_unread())
        hidden = set() if with_hidden else self._stores.mute_rules.hidden_among(held.ids)
        ids = [one for one in held.ids if one not in hidden]
        cards = self.cards_of(ids[(page - 1) * SEARCH_PAGE : page * SEARCH_PAGE])
        self.show(cards)
        near = self._close(meaning, cards[:NEAR_LEADS], set(held.ids)) if page == 1 else []
        if near:
            near = self._wanted(self.cards_of(self._lists.hold_found(text, [card.id for card in near], "near").ids))
        self.show(near)
        return SearchResults(tuple(cards), len(ids), page, held.made_at, tuple(near), held.new, len(hidden))

    def show(self, cards: Sequence[NewsCard]) -> None:
        """Copy articles that only the pool's copy has to the article store, with decoded vectors.

        They can then be opened and reacted to like any other. Call it inside `HeldLists.still`, together with the
        search that found them.
        """
        release = self._serving.manifest()
        missing = set(self._stores.news.missing([card.id for card in cards]))
        if release is None or not missing or self.is_unread():
            return
        taken = [card for card in cards if card.id in missing]
        broadcast = self._serving.feed_context.recall.broadcast
        leads = self._stores.articles.leads([card.id for card in taken])
        try:
            coded = [leads.get(card.id, card.id) for card in taken]  # a report has the vector of the one that lists it
            vectors = broadcast.coded(coded, release.encoder, release.dimensions)
        except PoolBroken:
            broadcast.discard()
            return
        self._stores.news.put(taken, vectors, release.encoder, self._clock())

    def beside(self, news_id: str, ids: Sequence[str]) -> tuple[NewsCard | None, NewsCard | None]:
        """Return the articles before and after one in a list, and `show` them; None where there is none."""
        at = ids.index(news_id) if news_id in ids else len(ids) + 1
        with self._lists.still():
            around = [self.cards_of(ids[max(0, place) : place + 1]) for place in (at - 1, at + 1)]
            self.show([card for cards in around for card in cards])
        before, after = (next(iter(cards), None) for cards in around)
        return before, after

    def _readable(self, ids: list[str]) -> list[str]:
        """Return those of these articles that can be opened: not those of a copy that can't be read."""
        if self.size() is not None:
            return ids
        missing = set(self._stores.news.missing(ids))
        return [one for one in ids if one not in missing]

    def cards_of(self, ids: Sequence[str]) -> list[NewsCard]:
        """Return the cards of these articles that are here, in order."""
        cards = {card.id: card for card in self._stores.news.cards(ids)}
        places = self._stores.pool.places([news_id for news_id in ids if news_id not in cards])
        cards |= {card.id: card for card in self._stores.pool.cards(places.values())}
        leads = self._stores.articles.leads([news_id for news_id in ids if news_id not in cards])
        if leads:
            found = {card.id: card for card in self.cards_of(sorted(set(leads.values())))}
            reports = {one: report_of(found[lead], one) for one, lead in leads.items() if lead in found}
            cards |= {one: card for one, card in reports.items() if card is not None}
        return [cards[news_id] for news_id in ids if news_id in cards]

    def _close(self, meaning: Mapping[str, float], leads: Sequence[NewsCard], found: set[str]) -> list[NewsCard]:
        """Return articles not in `found` that answer the search by related words, then some close to its results."""
        answers = [key for key, score in meaning.items() if score >= MEANING_FLOOR and key not in found]
        near = self._wanted(self.cards_of(self._readable(answers[: NEAR * EACH_STORY])))
        if len(near) < NEAR:
            near = self._wanted([*near, *self._near(leads, found | {card.id for card in near})])
        return near

    def _near(self, leads: Sequence[NewsCard], found: set[str]) -> list[NewsCard]:
        """Return articles of the pool's copy that are close to one of `leads` by topic or cosine.

        The most similar come first (see `feed.similarity`).
        """
        release = self._serving.manifest()
        if release is None or not leads or self.size() is None:
            return []
        context = self._serving.feed_context
        default_list = context.default_list.candidates(release.encoder, release.dimensions)
        floor = floor_of(release, default_list)
        similarity = SimilarityRule(default_list, floor)
        here, vectors = self._stores.news.vectors([card.id for card in leads], release.encoder)
        near: dict[str, tuple[float, NewsCard]] = {}
        for row in np.flatnonzero(here).tolist():
            try:
                query = unit(vectors[row : row + 1])[0]
                around = context.recall.broadcast.find(query, NEAR_LOOKED_AT, release.encoder, priors=False)
            except PoolBroken:
                context.recall.broadcast.discard()
                return []
            for similar in similarity.of(leads[row], vectors[row], around.cards, around.vectors):
                card = around.cards[similar.row]
                if (
                    is_by_meaning(similar, floor)
                    and card.id not in found
                    and similar.cosine > near.get(card.id, (-1.0, card))[0]
                ):
                    near[card.id] = similar.cosine, card
        return self._wanted([card for _, card in sorted(near.values(), key=lambda one: (-one[0], one[1].id))])

    def _wanted(self, cards: Sequence[NewsCard]) -> list[NewsCard]:
        """Return the first of these that the reader neither hides nor dismissed, one per story."""
        blocked = self._stores.stances.blocked()
        less = {one.news_id for one in self._stores.feedback.reactions("less")}
        less |= self._stores.mute_rules.hidden_among(card.id for card in cards)
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
