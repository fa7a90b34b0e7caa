"""A named stand-in for the device behind the pages: made-up but plausible figures in the device's own view types.

It keeps what is posted to it, so that the pages' forms can be followed, and can be empty, typical, overfull or offline.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Literal

from device_app.errors import UnknownNews
from device_app.feed.article import Article
from device_app.feed.item import Feed, FeedItem, Reason, Slot
from device_app.interests.cluster import InterestCluster
from device_app.privacy.composed import composed
from device_app.ranking.groups import OwnGroup
from device_app.settings import PrivacySettings, with_overrides
from device_app.store.searches import SavedSearch
from device_app.views.explore import ExploreSection
from device_app.views.history import HistoryEntry, HistoryPage
from device_app.views.latency import LatencyView, latency_view, waterfall
from device_app.views.modes import PoolFacts, mechanism_facts, mode_facts
from device_app.views.privacy import BudgetView, CountFacts, LedgerDay, PrivacyView, ReportPair
from device_app.views.searches import SearchesView, SearchLine, TopicLine, use_of
from device_app.views.sources import SourceFacts, SourcesView
from device_app.views.status import StatusView
from device_app.views.traffic import Looks, Shown, Traffic, TrafficEntry, TrafficLine, TrafficLog
from device_app.views.training import Contribution, TrainingView, UpdateFacts
from device_app.wire.news import NewsCard
from device_app.wire.protections import LocalLaplace
from device_app.wire.releases import BlobRef, Codebook, RecallProtocol
from device_app.wire.rounds import RoundStatus

_BLOB = BlobRef(sha256="ab" * 32, size_bytes=1)
PROTOCOL = RecallProtocol(
    basis_size=30,
    channels_limit=5,
    cluster_distance=1,
    score_clip=0.2,
    score_noise=1.2,
    codebooks=(Codebook(size=16, epsilon=4, prototypes=_BLOB), Codebook(size=64, epsilon=8, prototypes=_BLOB)),
    pool_codes=True,
)
Kind = Literal["empty", "typical", "overfull", "offline"]
_TEXTS = json.loads(Path(__file__).with_name("pages_stories.json").read_text(encoding="utf-8"))


@dataclass
class PagesDevice:
    """Answers the verbs of `device_app.device.Device` from memory."""

    kind: Kind = "typical"
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        self.settings = PrivacySettings(
            mode="basis_laplace" if self.kind == "overfull" else "code",
            epsilon_per_day_reports=150.0 if self.kind == "overfull" else 8.0,
            epsilon_lifetime_reports=None if self.kind == "overfull" else 40.0,
            training=self.kind != "empty",
        )
        self.chosen: tuple[str, ...] | None = None if self.kind == "empty" else ("sea", "science")
        self.reacted: dict[str, set[str]] = {}
        self.held: dict[tuple[str, str], str] = {("section", "science"): "follow", ("topic", "football"): "block"}
        self.paused = False
        self.names: dict[int, str] = {}
        self.muted: set[int] = set()
        self.opened: list[tuple[str, str | None]] = []
        self.found: list[str] = []
        self.saved_searches: list[SavedSearch] = []
        self.deleted: set[int] = set()
        self.cards = () if self.kind == "empty" else self._cards()

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
        """The card, or UnknownNews as the device raises it."""
        found = next((card for card in self.cards if card.id == news_id), None)
        if found is None:
            raise UnknownNews(news_id)
        return found

    def status(self) -> StatusView:
        """The shield and the thin line."""
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
            feed_mode=None if self.kind == "empty" else "personal",
            feed_made_at=None if self.kind == "empty" else self.now,
            feed_release=None if self.kind == "empty" else "r2",
            feed_ms=None if self.kind == "empty" else 19.4,
            online=self.kind != "offline",
            last_sync_at=self.now,
            clicks={"empty": 0, "typical": 42, "overfull": 10_000, "offline": 42}[self.kind],
            chosen_sections=self.chosen,
            training=self.settings.training,
            troubles=(),
        )

    def feed(self, *, refresh: bool = False) -> Feed:
        """The same feed each time."""
        slots: dict[int, Slot] = {0: "lead", 8: "developing", 27: "developing", 1: "developing", 24: "developing"}
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

    def _reason(self, card: NewsCard, slot: Slot) -> Reason:
        if slot == "fresh":
            return Reason("recent", "Published in the last hours; every reader gets it.")
        if slot == "explore":
            return Reason("explore", f"You rarely open {card.section}; one of its best today.")
        if slot == "developing":
            return Reason("developing", "Several publishers follow this story.")
        return Reason("interest", "You read three stories on ports.", "Ports and ships", self.cards[17:20])

    def open(self, news_id: str, feed_id: str | None = None, *, found: bool = False) -> Article:
        """Note the click and give the story."""
        card = self.card(news_id)
        self.found += [news_id] if found else []
        self.opened.append((news_id, feed_id))
        text = () if card.topic == "trams" else _TEXTS["paragraphs"] * (12 if self.kind == "overfull" else 2)
        related = tuple(other for other in self.cards if other.section == card.section and other.id != news_id)[:4]
        reacted = frozenset(self.reacted.get(news_id, set()))
        return Article(card, text, self._reason(card, "for_you"), related, reacted, feed_id)

    def react(self, news_id: str, kind: str) -> None:
        """Toggle a reaction."""
        self.card(news_id)
        self.reacted.setdefault(news_id, set()).symmetric_difference_update({kind})

    def reactions(self) -> dict[str, frozenset[str]]:
        """All reactions by news."""
        return {news_id: frozenset(kinds) for news_id, kinds in self.reacted.items()}

    def saved(self) -> list[NewsCard]:
        """Saved news."""
        return [card for card in self.cards if "save" in self.reacted.get(card.id, ())]

    def stance(self, kind: str, name: str, stance: str | None) -> None:
        """Follow, block or neither."""
        self.held.pop((kind, name), None)
        if stance is not None:
            self.held[kind, name] = stance

    def stances(self) -> dict[tuple[str, str], str]:
        """What is followed or blocked."""
        return dict(self.held)

    def search(self, text: str) -> list[NewsCard]:
        """Cards with the words in their headline."""
        return [card for card in self.cards if text.lower() in card.title.lower()]

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
        """The saved list."""
        return SearchesView(
            tuple(
                SearchLine(one, len(self.search(one.words)), min(1, len(self.search(one.words))))
                for one in reversed(self.saved_searches)
            ),
            tuple(
                TopicLine(name, self.now, 3)
                for (kind, name), stance in sorted(self.held.items())
                if (kind, stance) == ("topic", "follow")
            ),
            use_of(self.settings),
        )

    def explore(self) -> tuple[ExploreSection, ...]:
        """Sections by name."""
        names = sorted({card.section for card in self.cards})
        return tuple(
            ExploreSection(
                name, tuple(card for card in self.cards if card.section == name), self.held.get(("section", name))
            )
            for name in names
        )

    def popular(self) -> tuple[NewsCard, ...]:
        """The first twenty."""
        return self.cards[:20]

    def popular_since(self) -> datetime | None:
        """Counted half an hour ago, or never."""
        return None if self.kind == "empty" else self.now - timedelta(minutes=30)

    def following(self) -> list[FeedItem]:
        """Items of followed sections."""
        followed = [card for card in self.cards if self.held.get(("section", card.section)) == "follow"]
        return [
            FeedItem(card, at, "following", Reason("following", f"You follow {card.section}."), 0.5)
            for at, card in enumerate(followed)
        ]

    def interests(self) -> list[InterestCluster]:
        """Three interests, or none."""
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
        """Mute or count again."""
        (self.muted.add if muted else self.muted.discard)(key)

    def forget(self, key: int) -> None:
        """Drop an interest's name; its clicks are made up anyway."""
        self.names.pop(key, None)

    def history(self, query: str = "", page: int = 1) -> HistoryPage:
        """Clicks, one of them on news that left the device."""
        cards = [card for card in self.cards if query.lower() in card.title.lower()]
        entries = [
            HistoryEntry(at, self.now - timedelta(hours=3 * at), card.id, None if at == 3 else card)
            for at, card in enumerate(cards[:25], 1)
            if at not in self.deleted
        ]
        total = 10_000 if self.kind == "overfull" else len(entries)
        return HistoryPage(query, page, max(1, math.ceil(total / 25)), total, tuple(entries))

    def delete_click(self, click_id: int) -> None:
        """Forget one click."""
        self.deleted.add(click_id)

    def privacy(self, page: int = 1, shown: Shown | None = None) -> PrivacyView:
        """A day of requests, a ledger and a report."""
        chance = Random(7)
        clear = tuple(tuple(max(-0.2, min(0.2, chance.gauss(0, 0.15))) for _ in range(30)) for _ in range(3))
        noisy = tuple(tuple(v + chance.choice((-1, 1)) * chance.expovariate(1 / 1.2) for v in row) for row in clear)
        empty, scored = self.kind == "empty", self.settings.mode == "basis_laplace"
        cost = 50.0 if scored else 4.0
        reports = BudgetView(
            "reports",
            self.settings.epsilon_per_day_reports,
            0 if empty else cost,
            max(0.0, self.settings.epsilon_per_day_reports - (0 if empty else cost)),
            0 if empty else 6 * cost,
            self.settings.epsilon_lifetime_reports,
        )
        days = tuple(
            LedgerDay(date(2026, 11, 20) - timedelta(days=k), "reports", cost * (1 + k % 3), 1 + k % 3)
            for k in range(9)
        )
        pool = None if empty else PoolFacts(12_312, 6_900_000)
        return PrivacyView(
            settings=self.settings,
            given=frozenset({"training", "epsilon_per_day_training"} if self.settings.training else ()),
            modes=mode_facts(self.settings, PROTOCOL, pool),
            mechanism=None if empty else mechanism_facts(self.settings, PROTOCOL),
            composed=composed([] if empty else [("reports", "code", {"size": 16.0, "epsilon": 4.0}, 4.0, 0.0, 6)]),
            pool=pool,
            budgets=(
                reports,
                BudgetView("training", 0.0, 0.0, 0.0, 0.0),
                BudgetView("counts", 6.0, 0.0 if empty else 3.62, 6.0 if empty else 2.38, 0.0 if empty else 5.6),
            ),
            days=() if empty else days,
            log=self._log(page, shown or ("all" if empty else "concerning")),
            report=None
            if empty
            else ReportPair(
                self.settings.mode,
                self.now - timedelta(hours=2),
                self.now + timedelta(hours=22),
                "r3",
                clear if scored else ((5.0,),),
                noisy if scored else ((11.0,),),
                (21, 14, 7) if scored else (),
                ("Ports and ships", "Stars and stones", "Trams") if scored else (),
            ),
            counts=()
            if empty
            else (
                CountFacts("round-9", self.now - timedelta(hours=26), self.now - timedelta(hours=2), 28, 3, 3.62),
                CountFacts("round-4", self.now - timedelta(hours=50), self.now - timedelta(hours=26), 32, 5, 1.98),
            ),
            new_clicks=2,
            clicks_until_report=3,
            sources=SourcesView(
                (
                    SourceFacts("Reading", "42 clicks", "Yes", 0 if empty else 11, 0.0 if empty else 15.04),
                    SourceFacts("Saved searches and topics", "2 searches, 1 topic", "Yes", 0, 0.0),
                ),
                1e-3,
                apart=self.kind != "offline",
            ),
        )

    def _log(self, page: int, shown: Shown) -> TrafficLog:
        """The requests as lines; the looks for a release stand for fourteen."""
        if self.kind == "empty":
            return TrafficLog(shown, (), page, page, 0, 0)
        lines = [self._as_line(entry) for entry in self._entries() if entry.concerns or shown == "all"]
        total = 48_211 if self.kind == "overfull" else 19
        return TrafficLog(shown, tuple(lines), page, 40 if self.kind == "overfull" else 1, total, 4)

    def _as_line(self, entry: TrafficEntry) -> TrafficLine:
        count = 14 if entry.entry_id == 1 else 1
        looks = tuple(replace(entry, at=entry.at - timedelta(seconds=5 * at)) for at in range(10)) if count > 1 else ()
        return TrafficLine(
            **vars(entry), count=count, oldest_id=1, first_at=entry.at - timedelta(seconds=65), unanswered=0,
            looks=looks,
        )  # fmt: skip

    def looks(self, oldest_id: int, newest_id: int, page: int = 1) -> Looks | None:
        """Ten looks of fourteen."""
        entry = next((one for one in self._entries() if one.entry_id == newest_id), None)
        return None if entry is None else Looks(entry, oldest_id, page, 2, 14, self._as_line(entry).looks)

    def _entries(self) -> tuple[TrafficEntry, ...]:
        base = "http://127.0.0.1:8400/v1"
        rows = (
            ("Asks for the current release", "GET", "/releases/current", 212, 1_890, 200, 3.2, 0.0),
            (
                "Asks for the common list, the same for every device",
                "GET",
                "/news/front?limit=600",
                230,
                412_201,
                200,
                14.0,
                0.0,
            ),
            ("Sends the noisy report of 3 channels of 30 scores", "POST", "/recall", 2_411, 233_410, 200, 9.8, 50.0),
            ("Sends the same report again, bit for bit", "POST", "/recall", 2_411, 233_402, 200, 8.1, 0.0),
            (
                "Asks for the texts of all 400 recalled news at once",
                "POST",
                "/news/bodies",
                8_122,
                520_114,
                200,
                21.0,
                0.0,
            ),
            ("Checks in for a training round", "POST", "/rounds/check-in", 301, 0, None, 2_000.0, 0.0),
        )
        return tuple(
            TrafficEntry(
                at,
                self.now - timedelta(minutes=at * 7),
                words,
                method,
                base + path,
                sent,
                received,
                status,
                ms,
                cost,
                method == "POST",
            )
            for at, (words, method, path, sent, received, status, ms, cost) in enumerate(rows, 1)
        )

    def traffic(self, entry_id: int) -> Traffic | None:
        """One request; number 2 has no body, number 6 one that is not JSON."""
        entry = next((one for one in self._entries() if one.entry_id == entry_id), None)
        if entry is None:
            return None
        report = {
            "release": "r3",
            "limit": 400,
            "report": {"kind": "basis_laplace", "scores": [[0.81, -1.92]], "counts": [21]},
        }
        body = {2: b"", 6: bytes(range(256))}.get(entry_id, json.dumps(report).encode())
        head = f"{entry.method} /v1/recall HTTP/1.1\r\nhost: 127.0.0.1:8400\r\ncontent-type: application/json\r\n"
        answer = "" if entry.status is None else "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        trouble = "no answer within 10 s" if entry.status is None else None
        gone = entry_id == 4
        return Traffic(entry, head, b"" if gone else body, not gone, len(body), answer, trouble)

    def set_privacy(self, **changes: Any) -> None:
        """Change the settings, refusing what their class refuses."""
        self.settings = with_overrides(self.settings, changes)

    def export(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {"clicks": [{"news_id": card.id, "at": self.now} for card in self.cards[:3]]}

    def erase(self) -> None:
        """Forget all."""
        self.kind, self.cards, self.chosen = "empty", (), None

    def release(self) -> str | None:
        """Anything but None once there was a sync."""
        return None if self.kind == "empty" else "r3"

    def training(self) -> TrainingView:
        """A round under way, or nothing."""
        if self.kind == "empty":
            return TrainingView(
                self.settings, False, "Training is switched off on this device.", None, None, (), (), None
            )
        current = RoundStatus(
            round="round-7",
            system="uni_fedrec",
            state="failed" if self.kind == "overfull" else "updates",
            release="r3",
            reason="only 11 of 40 updates arrived in time" if self.kind == "overfull" else None,
            cohort=60,
            cohort_minimum=40,
            joined=60,
            uploaded=23,
            received_bytes=22_540_112,
            opened_at=self.now - timedelta(seconds=8),
            closes_at=self.now + timedelta(seconds=52),
        )
        done = tuple(
            Contribution(
                f"round-{k}",
                "uni_fedrec",
                f"r{k}",
                "applied" if k else "refused",
                self.now - timedelta(hours=k * 5),
                980_004,
                4.9e6,
            )
            for k in range(3)
        )
        updates = (
            UpdateFacts("ranker.features", True, 262, LocalLaplace(), 5_240.0),
            UpdateFacts("recall", False, 244_993, LocalLaplace(), 4_899_860.0),
        )
        return TrainingView(
            settings=self.settings,
            paused=self.paused,
            why_not=None,
            round=current,
            stage="computing the update",
            updates=updates,
            contributions=done,
            release="r3",
            groups=(OwnGroup("ranker.finding", 2, 4),),
        )

    def pause_training(self, paused: bool) -> None:
        """Pause or go on."""
        self.paused = paused

    def latency(self) -> LatencyView:
        """A hundred requests around 20 ms, or none."""
        if self.kind == "empty":
            return latency_view(())
        chance = Random(3)
        base = {
            "store": 1.2,
            "cluster": 2.1,
            "decompose": 0.8,
            "noise": 0.3,
            "encode": 0.4,
            "network": 7.5,
            "decode": 1.6,
            "rank": 2.9,
            "build": 2.6,
        }
        server = {"decode": 0.3, "aggregate": 0.1, "search": 1.1, "merge": 0.4, "encode": 1.9}
        return latency_view(
            [
                waterfall(
                    self.now - timedelta(minutes=k),
                    "recall",
                    {name: ms * chance.lognormvariate(0, 0.3) for name, ms in base.items()},
                    server,
                )
                for k in range(100)
            ]
        )

    def choose_sections(self, names: tuple[str, ...]) -> None:
        """Keep the first visit's choice."""
        self.chosen = tuple(names)
