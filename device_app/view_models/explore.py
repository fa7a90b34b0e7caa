"""View models of the Explore page, the click history and the saved searches.

Explore shows every section of the default list. The history shows the reader's clicks page by page. Saved searches and
followed topics are shown with what is new in each and what they are used for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from device_app.feed.lists import DefaultList
from device_app.feed.preference_reader import named
from device_app.feed.scores import recency
from device_app.reports.modes import MODES
from device_app.settings import FeedSettings, PrivacySettings
from device_app.store.rows import to_us
from device_app.store.searches import SavedSearch, WordHit
from device_app.stores import DeviceStores
from protocol.news import NewsCard


@dataclass(frozen=True)
class ExploreSection:
    """One section with its articles, best first.

    stance: 'follow', 'block' or None, as set by the reader.
    """

    section: str
    cards: tuple[NewsCard, ...]
    stance: str | None


def explore_sections(
    stores: DeviceStores, default_list: DefaultList, now: datetime, weights: FeedSettings
) -> tuple[ExploreSection, ...]:
    """Return the default list by section, those with the most articles first; empty before the first sync.

    Articles in a section are sorted by editorial weight plus recency. Blocked topics and publishers, and what a mute
    rule hides, are left out; a blocked section stays, marked, so that the reader can unblock it.
    """
    kept = stores.default_list.current()
    if kept is None:
        return ()
    listed = default_list.candidates(kept.encoder, 0)
    blocked, stances = named(stores.stances.blocked()), stores.stances.all()
    hidden = listed.named(listed.topics, blocked.topics) | listed.named(listed.publishers, blocked.publishers)
    hidden |= listed.named(listed.ids, stores.mute_rules.hidden_among(card.id for card in listed.cards))
    shown = listed.only(~hidden)
    sections: dict[str, list[NewsCard]] = {}
    for row in np.argsort(-(shown.weights + recency(shown, now, weights.half_life_hours)), kind="stable"):
        sections.setdefault(shown.cards[row].section, []).append(shown.cards[row])
    return tuple(
        ExploreSection(section, tuple(cards), stances.get(("section", section)))
        for section, cards in sorted(sections.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )


def regrouped(cards: Iterable[NewsCard], stances: Mapping[tuple[str, str], str]) -> tuple[ExploreSection, ...]:
    """Return the cards of a held list grouped by section, in the list's order."""
    sections: dict[str, list[NewsCard]] = {}
    for card in cards:
        sections.setdefault(card.section, []).append(card)
    return tuple(
        ExploreSection(section, tuple(found), stances.get(("section", section))) for section, found in sections.items()
    )


@dataclass(frozen=True)
class HistoryEntry:
    """One click; card is None if the article is no longer on the device."""

    click_id: int
    at: datetime
    news_id: str
    card: NewsCard | None


@dataclass(frozen=True)
class HistoryPage:
    """Clicks, newest first; page counts from 1."""

    query: str
    page: int
    pages: int
    total: int
    entries: tuple[HistoryEntry, ...]


def history_page(stores: DeviceStores, query: str, page: int) -> HistoryPage:
    """Return a page of the clicks whose card contains every word of `query`, or of all clicks."""
    found = stores.clicks.search(query, page)
    cards = {card.id: card for card in stores.news.cards([click.news_id for click in found.rows])}
    return HistoryPage(
        query=query,
        page=found.number,
        pages=found.pages,
        total=found.total,
        entries=tuple(
            HistoryEntry(click.id, click.at, click.news_id, cards.get(click.news_id)) for click in found.rows
        ),
    )


@dataclass(frozen=True)
class SearchLine:
    """A saved search: how many stories match, and how many are newer than the last visit."""

    search: SavedSearch
    stories: int
    new: int


@dataclass(frozen=True)
class TopicLine:
    """A followed topic, since when, and how many of its stories are here."""

    name: str
    since: datetime
    stories: int


@dataclass(frozen=True)
class SearchesView:
    """Saved searches and followed topics.

    use is 'report', 'here' (recall on this device), 'off' (switched off by the reader) or 'mode' (unused in this mode).
    """

    searches: tuple[SearchLine, ...]
    topics: tuple[TopicLine, ...]
    use: str

    def saved(self, words: str) -> SavedSearch | None:
        plain = " ".join(words.split())
        return next((line.search for line in self.searches if line.search.words == plain), None)


def searches_view(
    stores: DeviceStores, settings: PrivacySettings, hits: Callable[[str], Sequence[WordHit]]
) -> SearchesView:
    """Return saved searches and followed topics.

    hits: returns the current results of a search.
    """
    return SearchesView(
        searches=tuple(_line(one, hits(one.words)) for one in reversed(stores.searches.saved())),
        topics=tuple(
            TopicLine(name, since, stores.articles.count_by_name("topic", name))
            for name, since in stores.stances.followed_topics()
        ),
        use=use_of(settings),
    )


def use_of(settings: PrivacySettings) -> str:
    """Return what saved searches and followed topics are used for under these settings."""
    if not settings.searches_in_reports:
        return "off"
    mode = MODES[settings.mode]
    if mode.reporter is not None and mode.reporter.made_from == "vector":
        return "report"
    return "here" if mode.finds == "here" else "mode"


def _line(search: SavedSearch, hits: Sequence[WordHit]) -> SearchLine:
    looked_us = to_us(search.looked_at)
    return SearchLine(search, len(hits), sum(hit.published_us > looked_us for hit in hits))
