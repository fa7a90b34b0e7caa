"""A stand-in for the device behind the pages: plausible figures in the device's own view types.

It keeps what is posted to it, so that the pages' forms can be followed, and can be empty, typical, overfull or offline.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from device_app.errors import NewsNotHere
from device_app.feed.held_lists import HeldIds, HeldList
from device_app.feed.item import Article, Ending, Feed, FeedItem, PageSlot, Reason
from device_app.feed.offer import Offer
from device_app.feed.whole_pool import SEARCH_PAGE, SearchResults, WholePool
from device_app.reading.interest_profile import InterestCluster
from device_app.settings import PrivacySettings
from device_app.store.articles import Source
from device_app.store.searches import SavedSearch
from device_app.view_models.explore import (
    ExploreSection,
    HistoryEntry,
    HistoryPage,
    SearchesView,
    SearchLine,
    TopicLine,
    use_of,
)
from device_app.view_models.latency import LatencyView
from device_app.view_models.privacy import PrivacyView
from device_app.view_models.status import StatusView
from device_app.view_models.traffic import RequestGroup, ShownTraffic, TrafficDetail
from device_app.view_models.training import TrainingView
from protocol.bodies import pieces_of, read_body
from protocol.news import NewsCard
from tests.doubles import pages_traffic
from tests.doubles.bodies import RICH_BODY
from tests.doubles.pages_figures import privacy_view, training_view, waterfalls
from tests.doubles.pages_moving import PagesMoving, pages_parts
from tests.doubles.pages_own_feeds import PagesMuting, PagesOwnFeeds
from tests.doubles.pages_traffic import Kind

_TEXTS = json.loads(Path(__file__).with_name("pages_stories.json").read_text(encoding="utf-8"))


@dataclass
class PagesDevice:
    """Implements the methods of `device_app.device.Device` in memory."""

    kind: Kind = "typical"
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    damage = staticmethod(lambda: None)
    show = still = choosing = staticmethod(nullcontext)

    def __post_init__(self) -> None:
        self.settings = PrivacySettings(
            mode="basis_laplace" if self.kind == "overfull" else "interest",
            epsilon_per_day_reports=150.0 if self.kind == "overfull" else 8.0,
            epsilon_lifetime_reports=None if self.kind == "overfull" else 40.0,
            training=self.kind != "empty",
        )
        self.chosen: tuple[str, ...] | None = None if self.kind == "empty" else ("sea", "science")
        self.reacted: dict[str, set[str]] = {}
        self.held: dict[tuple[str, str], str] = {("section", "science"): "follow", ("topic", "football"): "block"}
        self.paused, self.own_feeds, self.ending = False, False, "whole"
        self.own_server = self.preparing = None
        self.parts, self.is_unread = pages_parts(), lambda: False
        self.names: dict[int, str] = {}
        self.shown_ids: dict[str, list[str]] = {}
        self.opened: list[tuple[str, str | None]] = []
        self.bodies: dict[str, str] = {}
        self.found: list[str] = []
        self.marks: set[str] = set()
        self.rare = True
        self.saved_searches: list[SavedSearch] = []
        self.muted, self.deleted = set[int](), set[int]()
        self.viewed: set[tuple[str, str]] = set()
        self.offered = Offer() if self.kind == "empty" else Offer(new=7, read=2, before="feed-0")
        self.cards = () if self.kind == "empty" else self._cards()
        self.texts = lambda: len(self.cards)
        self.feeds, self.muting = PagesOwnFeeds(self), PagesMuting()
        self.moving, self.lists = PagesMoving(), self  # a list is held by nobody: its news never change

    def _cards(self) -> tuple[NewsCard, ...]:
        cards = []
        for at, story in enumerate(_TEXTS["stories"]):
            title, abstract, publisher = story["title"], story["abstract"], story["publisher"]
            if self.kind == "overfull":
                title = (
                    _TEXTS["long_title"] if at in (0, 4) else _TEXTS["right_to_left_title"] if at in (2, 7) else title
                )
                abstract = "" if at == 4 else _TEXTS["right_to_left_abstract"] if at in (2, 7) else abstract * 6
                publisher = "The Associated Regional Evening Newspapers of the Lower Valley" if at == 5 else publisher
            cards.append(
                NewsCard(
                    id=f"newsroom:{at:04d}",
                    title=title,
                    abstract=abstract,
                    publisher=publisher,
                    section=story["section"],
                    topic=story["topic"],
                    url=f"https://{publisher.lower().replace(' ', '-')}.example/{at}",
                    story="dredging" if at in (0, 8, 27) else "budget" if at in (1, 24) else None,
                    published_at=self.now - timedelta(minutes=23 + at * at * 5),
                    weight=round(1 - at / 40, 3),
                )
            )
        return tuple(cards)

    def card(self, news_id: str) -> NewsCard:
        """Return the card, or raise NewsNotHere as the device does."""
        found = next((card for card in self.cards if card.id == news_id), None)
        if found is None:
            raise NewsNotHere(news_id)
        return found

    def status(self) -> StatusView:
        """Return the shield and the status line."""
        spent = {"empty": 0.0, "typical": 4.0, "overfull": 150.0, "offline": 4.0}[self.kind]
        left = self.settings.epsilon_per_day_reports - spent
        words = "Budget for another report is left." if left >= 4 else "No budget for another report is left today."
        return StatusView(
            profile="reader",
            mode=self.settings.mode,
            shield="green" if left >= 4 else "amber",
            shield_words=words,
            spent_today=spent,
            per_day=self.settings.epsilon_per_day_reports,
            release=None if self.kind == "empty" else "r3",
            feed_made_at=None if self.kind == "empty" else self.now,
            online=self.kind != "offline",
            clicks={"empty": 0, "typical": 42, "overfull": 10_000, "offline": 42}[self.kind],
            chosen_sections=self.chosen,
            training=self.settings.training,
            alerts=(),
            own_feeds=self.own_feeds,
        )

    def feed(self, *, refresh: bool = False) -> Feed:
        """Return the same feed each time."""
        slots: dict[int, PageSlot] = {0: "lead", 8: "developing", 27: "developing", 1: "developing", 24: "developing"}
        slots |= {7: "fresh", 9: "fresh", 14: "fresh", 12: "explore", 20: "explore", 25: "following"}
        items = tuple(
            FeedItem(card, at, slots.get(at, "for_you"), self._reason(card, slots.get(at, "for_you")), 1 - at / 30)
            for at, card in enumerate(
                sorted(self.cards, key=lambda card: slots.get(int(card.id[-4:]), "") == "developing")
            )
        )
        items = tuple(
            FeedItem(item.card, at, slots.get(int(item.card.id[-4:]), "for_you"), item.reason, item.score)
            for at, item in enumerate(sorted(items, key=lambda item: item.card.story or ""))
        )
        notices = {
            "empty": "The newsroom was never reached from this device.",
            "offline": "The newsroom does not answer. This is the feed of 07:42; everything in it can be read.",
        }
        return Feed(
            "feed-1",
            self.now,
            None if self.kind == "empty" else "r3",
            items,
            "offline" if self.kind == "offline" else "personal",
            notices.get(self.kind),
            recalled=400 if items else 0,
        )

    def more(self, feed_id: str) -> Feed | None:
        """Return nothing more."""
        return self.page(feed_id)

    def page(self, feed_id: str) -> Feed | None:
        """Return its one feed, also as the previous one."""
        return self.feed() if feed_id in ("feed-1", "feed-0") else None

    def page_path(self, feed_id: str | None) -> str:
        """Return the front page's path."""
        return "/"

    def offer(self, feed: Feed) -> Offer:
        """Return what the test has provided."""
        return self.offered

    def view(self, feed_id: str, news_ids: list[str]) -> int:
        """Record what was viewed."""
        self.viewed.update((feed_id, news_id) for news_id in news_ids)
        return len(news_ids)

    def read_news(self) -> frozenset[str]:
        """Return what was opened or marked."""
        return frozenset(news_id for news_id, _ in self.opened) | frozenset(self.marks)

    def mark(self, news_ids: Sequence[str], *, read: bool = True) -> int:
        """Mark stories; every mark is number 1."""
        (self.marks.update if read else self.marks.difference_update)(news_ids)
        return 1

    def marked(self, batch: int) -> int:
        """Return how many are marked."""
        return len(self.marks)

    def undo_mark(self, batch: int) -> int:
        """Unmark all."""
        self.marks.clear()
        return batch

    def other_sources(self, card: NewsCard) -> list[Source]:
        """Return the other cards of its story."""
        others = [one for one in self.cards if card.story and one.story == card.story and one.id != card.id]
        return [Source(one.publisher, one.id, at % 2 == 0) for at, one in enumerate(others[:5])]

    def unwanted(self) -> list[NewsCard]:
        """Return articles marked "Less"."""
        return [card for card in self.cards if "less" in self.reacted.get(card.id, ())]

    def _reason(self, card: NewsCard, slot: PageSlot) -> Reason:
        if slot == "fresh":
            return Reason("recent", "Published in the last hours; every reader gets it.")
        if slot == "explore":
            return Reason("explore", f"You rarely open {card.section}; one of its best today.")
        if slot == "developing":
            return Reason("developing", "Several publishers follow this story.")
        return Reason("interest", "You read three stories on ports.", "Ports and ships", self.cards[17:20])

    def click(self, news_id: str, feed_id: str | None = None, *, found: bool = False) -> None:
        """Record the click."""
        self.card(news_id)
        self.found += [news_id] if found else []
        self.opened += [(news_id, feed_id)]

    def open(self, news_id: str, feed_id: str | None = None, *, found: bool = False, clicked: bool = True) -> Article:
        """Record the click and return the story."""
        card = self.card(news_id)
        if clicked:
            self.click(news_id, feed_id, found=found)
        text = () if card.topic == "trams" else _TEXTS["paragraphs"] * (12 if self.kind == "overfull" else 2)
        related = tuple(other for other in self.cards if other.section == card.section and other.id != news_id)[:4]
        reacted = frozenset(self.reacted.get(news_id, set()))
        ending = cast(Ending, self.ending if text else "absent")
        pieces = tuple(pieces_of("\n\n".join(text)))
        if news_id in self.bodies:
            pieces = tuple(pieces_of(self.bodies[news_id]))
        elif card == self.cards[0] and text:
            pieces = (*pieces, *read_body(RICH_BODY))
        return Article(card, pieces, self._reason(card, "for_you"), related, reacted, feed_id, ending)

    def react(self, news_id: str, kind: str) -> None:
        """Toggle a reaction."""
        self.card(news_id)
        self.reacted.setdefault(news_id, set()).symmetric_difference_update({kind})

    def reactions(self) -> dict[str, frozenset[str]]:
        """Return all reactions by article."""
        return {news_id: frozenset(kinds) for news_id, kinds in self.reacted.items()}

    def saved(self) -> list[NewsCard]:
        """Return saved articles."""
        return [card for card in self.cards if "save" in self.reacted.get(card.id, ())]

    def stance(self, kind: str, name: str, stance: str | None) -> None:
        """Follow, block, or reset to neither."""
        self.held.pop((kind, name), None)
        if stance is not None:
            self.held[kind, name] = stance

    def wants_rare_first(self) -> bool:
        return self.rare

    def rare_first(self, wanted: bool) -> None:
        self.rare = wanted

    def stances(self) -> dict[tuple[str, str], str]:
        """Return what is followed or blocked."""
        return dict(self.held)

    def search(self, text: str, page: int = 1, *, hidden: bool = False) -> SearchResults:
        """Return cards with the words in their headline, and three similar ones."""
        found = [card for card in self.cards if text.lower() in card.title.lower()]
        near = [card for card in self.cards if card not in found][:3] if found and page == 1 else []
        self.shown_ids[f"search/{text}"] = [card.id for card in (*found, *near)]
        shown = found[(page - 1) * SEARCH_PAGE : page * SEARCH_PAGE]
        return SearchResults(
            tuple(shown), len(found), page, self.now, tuple(near), self.offered.new, 0 if hidden else 3
        )

    def save_search(self, words: str) -> SavedSearch:
        """Keep a search."""
        if not words.strip():
            raise ValueError("words: 1 to 200 characters, got 0")
        saved = SavedSearch(len(self.saved_searches) + 1, " ".join(words.split()), self.now, self.now)
        self.saved_searches.append(saved)
        return saved

    def delete_search(self, search_id: int) -> bool:
        """Drop a search."""
        before = len(self.saved_searches)
        self.saved_searches = [one for one in self.saved_searches if one.id != search_id]
        return len(self.saved_searches) < before

    def searches(self) -> SearchesView:
        """Return saved searches."""
        return SearchesView(
            tuple(SearchLine(one, self.search(one.words).total, 0) for one in reversed(self.saved_searches)),
            tuple(
                TopicLine(name, self.now, 3)
                for (kind, name), stance in sorted(self.held.items())
                if (kind, stance) == ("topic", "follow")
            ),
            use_of(self.settings),
        )

    def explore(self) -> tuple[ExploreSection, ...]:
        """Return sections by name."""
        names = sorted({card.section for card in self.cards})
        return tuple(
            ExploreSection(
                name, tuple(card for card in self.cards if card.section == name), self.held.get(("section", name))
            )
            for name in names
        )

    def popular(self) -> tuple[NewsCard, ...]:
        """Return the first twenty."""
        return self.cards[:20]

    def popular_since(self) -> datetime | None:
        """Return half an hour ago, or None for an empty device."""
        return None if self.kind == "empty" else self.now - timedelta(minutes=30)

    def hold(self, name: str, listed: Sequence[NewsCard], *, whole: bool = True) -> HeldList:
        """Return the current page, with what the test offers."""
        self.shown_ids[name] = [card.id for card in listed]
        return HeldList(self.now, tuple(listed), self.offered.new)

    def shown(self, name: str) -> list[str]:
        """Return the ids of a list that was held."""
        return self.shown_ids.get(name, [])

    beside = WholePool.beside

    def hold_ids(self, name: str, ids: Sequence[str], *, whole: bool = True) -> HeldIds:
        """Return the current list, with what the test offers."""
        self.shown_ids[name] = list(ids)
        return HeldIds(self.now, tuple(ids), self.offered.new, None)

    def came(self, held: HeldIds, cards: Sequence[NewsCard]) -> frozenset[str]:
        """Return nothing: no story is marked as new."""
        return frozenset()

    whole_pool = reading = library = interests = privacy = _lists = property(lambda self: self)

    def size(self) -> int | None:
        """Return the size of the pool's copy; an empty device has none."""
        return None if self.kind == "empty" else 6_000

    def named(self, kind: str, name: str) -> list[str]:
        """Return the ids of cards that contain the name."""
        return [card.id for card in self.cards if getattr(card, kind) == name]

    def cards_of(self, news_ids: Sequence[str]) -> list[NewsCard]:
        """Return the cards of these articles."""
        return [self.card(news_id) for news_id in news_ids]

    def renew(self, name: str) -> None:
        """Offer nothing more."""
        self.offered = Offer()

    def following(self) -> list[str]:
        """Return the ids of stories in followed sections."""
        return [card.id for card in self.cards if self.held.get(("section", card.section)) == "follow"]

    def clusters(self) -> list[InterestCluster]:
        """Return three interests, or none."""
        if self.kind == "empty":
            return []
        found = (
            (1, "Ports and ships", 0.52, (0, 8, 27)),
            (2, "Stars and stones", 0.31, (2, 17)),
            (3, "Trams", 0.17, (14,)),
        )
        return [
            InterestCluster(
                key,
                self.names.get(key, label),
                key in self.names,
                key in self.muted,
                0.0 if key in self.muted else weight,
                len(at) * 6,
                ("ports",),
                tuple(self.cards[k] for k in at),
                self.now - timedelta(hours=key * 7),
            )
            for key, label, weight, at in found
        ]

    def rename(self, key: int, name: str) -> None:
        """Give an interest a name."""
        self.names[key] = name

    def mute(self, key: int, muted: bool) -> None:
        """Mute or unmute an interest."""
        (self.muted.add if muted else self.muted.discard)(key)

    def forget(self, key: int) -> None:
        """Drop an interest's name; its clicks are invented."""
        self.names.pop(key, None)

    def history(self, query: str = "", page: int = 1) -> HistoryPage:
        """Return clicks, one of them on an article that is no longer on the device."""
        cards = [card for card in self.cards if query.lower() in card.title.lower()]
        entries = [
            HistoryEntry(at, self.now - timedelta(hours=3 * at), card.id, None if at == 3 else card)
            for at, card in enumerate(cards[:25], 1)
            if at not in self.deleted
        ]
        total = 10_000 if self.kind == "overfull" else len(entries)
        return HistoryPage(query, page, max(1, math.ceil(total / 25)), total, tuple(entries))

    def delete_click(self, click_id: int) -> None:
        """Delete one click."""
        self.deleted.add(click_id)

    def overview(self, page: int = 1, shown: ShownTraffic | None = None) -> PrivacyView:
        """Return a day of requests, a ledger and a report."""
        return privacy_view(self.kind, self.settings, self.now, page, shown)

    def polls(self, oldest_id: int, newest_id: int, page: int = 1) -> RequestGroup | None:
        """Return ten polls of fourteen."""
        return pages_traffic.polls(self.now, oldest_id, newest_id, page)

    def traffic(self, entry_id: int) -> TrafficDetail | None:
        """Return one request; number 2 has no body, number 6 one that is not JSON."""
        return pages_traffic.traffic(self.now, entry_id)

    def change(self, **changes: Any) -> None:
        """Change the settings; raises what their class raises."""
        self.settings = self.settings.with_overrides(changes)

    def export(self) -> dict[str, Any]:
        """Return everything, as plain values."""
        return {"clicks": [{"news_id": card.id, "at": self.now} for card in self.cards[:3]]}

    def erase(self) -> None:
        """Erase everything."""
        self.kind, self.cards, self.chosen = "empty", (), None

    def release(self) -> str | None:
        return None if self.kind == "empty" else "r3"

    def training(self) -> TrainingView:
        """Return a round under way, or nothing."""
        return training_view(self.kind, self.settings, self.now, self.paused)

    def pause_training(self, paused: bool) -> None:
        """Pause or resume."""
        self.paused = paused

    def latency(self) -> LatencyView:
        """Return a hundred requests around 20 ms, or none."""
        return waterfalls(self.kind, self.now)

    def choose_sections(self, names: tuple[str, ...]) -> None:
        """Store the first visit's choice."""
        self.chosen = tuple(names)
