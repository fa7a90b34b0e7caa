"""Readers who come back for days while the newspaper goes on, on the Python device; each page also on the browser's.

A reader looks at all or part of a page, opens stories from it, from a search and from Explore, marks some as read, and
asks for the next page. What was seen and read is recorded here, apart from the device.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from device_app.composition import build_device
from device_app.device import Device
from device_app.feed.item import Article, Feed
from device_app.privacy.noise_sources import SeededNoise
from device_app.settings import DeviceSettings, PerformanceSettings
from device_app.store.opinions import ReactionKind
from experiments.bench.newspaper_pages import DEFAULT_LIST, NewspaperPool
from protocol.news import NewsCard
from tests.conformance.node_end import ask_node
from tests.doubles.clock import StillClock
from tests.doubles.newspaper_backend import NewspaperBackend

HOURS = (0.2, 3.0)
"""Between two pages."""
AWAY_HOURS = 60.0
"""How long before the newspaper's last story a reader begins."""
OPENED_AT_MOST = 3
REACTIONS: tuple[ReactionKind, ...] = ("like", "less")


@dataclass(frozen=True)
class Visit:
    """A page, and what the reader had done before.

    new: stories that reached the device since the page before, published at most six hours before it. offered: how many
    of them that page offered. before: its stories if the reader saw all of them, else nothing. busy: the reader did
    something after the offer; else the device was started again before it. browser: the browser's page and its offer,
    from a copy of the store as it was when the page was made.
    """

    feed: Feed
    seen: frozenset[str]
    read: tuple[NewsCard, ...]
    opened: tuple[NewsCard, ...]
    liked: frozenset[str]
    new: frozenset[str]
    offered: int
    before: frozenset[str]
    busy: bool
    browser: dict[str, Any]

    @property
    def events(self) -> set[str]:
        """Events of which a story was read."""
        return {card.story for card in self.read if card.story}


class DaysOfReading:
    """One reader's device over a newspaper that goes on; `articles` are those opened, each with its related ones."""

    def __init__(self, newspaper: NewspaperPool, folder: Path, seed: int) -> None:
        """Start AWAY_HOURS before the newspaper's end, with a copy of the pool as it is then."""
        self._clock = StillClock(newspaper.cards[-1].published_at - timedelta(hours=AWAY_HOURS))
        self._backend, self._folder = NewspaperBackend.over(newspaper, self._clock()), folder
        self._rng, self._chance = random.Random(seed), random.Random(seed)
        self._backend.go_on(self._clock())
        self._noise, self._settings = (
            SeededNoise(seed),
            DeviceSettings(
                profile=f"reader{seed}",
                data_dir=folder,
                performance=PerformanceSettings(
                    default_list_limit=DEFAULT_LIST, watch_backend=False, bodies_wait_sec=0
                ),
            ),
        )
        self._device = self._started()
        self._seen: set[str] = set()
        self._read: list[NewsCard] = []
        self._liked: set[str] = set()
        self.articles: list[Article] = []
        topics = sorted({(card.section, card.topic) for card in newspaper.cards})
        self._tastes = self._rng.sample(topics, 4)

    def visits(self, pages: int) -> Iterator[Visit]:
        """Make pages; the first one is read too, but not among them."""
        device = self._device
        device.sync()
        blobs = [file.as_uri() for file in sorted((device.settings.home / "blobs").iterdir())]
        ask_node([("feed_blobs", blobs)])
        feed = device.reading.feed()
        for number in range(pages):
            known = self._stored()
            looked = self._look(feed)
            self._act(feed, looked)
            self._clock.go_on(3_600 * self._rng.uniform(*HOURS))
            self._backend.go_on(self._clock())
            device.sync()
            if self._rng.random() < 0.5:
                device.recall_step()
            busy = self._rng.random() < 0.5
            if not busy:
                device.close()
                device = self._device = self._started()
                device.parts.serving.models()  # before they are loaded, no number is offered
            offered = device.reading.offer(feed).new
            if busy:
                self._clock.go_on(60)
                self._act(feed, looked)
            oldest = feed.made_at - timedelta(hours=feed.fresh_hours)
            here = (self._backend.newspaper.cards[row] for row in self._backend.newspaper.listed)
            new = {card.id for card in here if card.id not in known and card.published_at > oldest}
            all_of_it = frozenset(item.card.id for item in feed.items)
            browser = self._on_the_browser(number)
            self._chance.seed(number)
            feed = device.reading.feed(refresh=True)
            yield Visit(
                feed,
                frozenset(self._seen),
                tuple(self._read),
                tuple(article.card for article in self.articles),
                frozenset(self._liked),
                frozenset(new - all_of_it),
                offered,
                all_of_it if all_of_it <= self._seen else frozenset(),
                busy,
                browser,
            )

    def close(self) -> None:
        """Close the device and delete its files."""
        self._device.close()
        shutil.rmtree(self._device.settings.home)

    def _started(self) -> Device:
        return build_device(
            self._settings,
            transport=self._backend.transport(),
            noise=self._noise,
            chance=self._chance,
            clock=self._clock,
        )

    def _stored(self) -> set[str]:
        return {row[0] for row in self._device.parts.stores.database.rows("SELECT id FROM news")}

    def _look(self, feed: Feed) -> list[NewsCard]:
        """See all of a page, its upper part, or only what stands first."""
        upto = self._rng.choice([len(feed.items), len(feed.items), self._rng.randint(4, 20), 1])
        looked = [item.card for item in feed.items[:upto]]
        self._device.reading.view(feed.feed_id, [card.id for card in looked])
        self._seen |= {card.id for card in looked}
        return looked

    def _act(self, feed: Feed, looked: list[NewsCard]) -> None:
        device, rng = self._device, self._rng
        liked = [card for card in looked if (card.section, card.topic) in self._tastes or rng.random() < 0.07]
        for card in liked[: rng.randint(0, OPENED_AT_MOST)]:
            self._open(device.reading.open(card.id, feed.feed_id))
        if rng.random() < 0.4:
            of_events = [card for card in looked if card.story] or looked
            found = device.library.search(" ".join(rng.choice(of_events).title.split()[:3])).cards
            for card in found[:2]:
                self._open(device.reading.open(card.id, found=True))
        if rng.random() < 0.3:
            card = rng.choice([card for listed in device.reading.explore() for card in listed.cards])
            self._open(device.reading.open(card.id))
        if rng.random() < 0.3:
            marked = rng.sample(looked, min(2, len(looked)))
            device.library.mark([card.id for card in marked])
            self._read += marked
        if rng.random() < 0.2:
            card, kind = rng.choice(looked), rng.choice(REACTIONS)
            device.library.react(card.id, kind)
            self._liked |= {card.id} if kind == "like" else set()

    def _open(self, article: Article) -> None:
        self.articles.append(article)
        self._read.append(article.card)

    def _on_the_browser(self, number: int) -> dict[str, Any]:
        file = self._folder / f"{self._device.settings.profile}.sqlite"
        with closing(sqlite3.connect(self._device.settings.database)) as stored, closing(sqlite3.connect(file)) as copy:
            stored.backup(copy)
        asked = {
            "file": file.as_uri(),
            "searches": None,
            "privacy": self._device.settings.privacy.model_dump(),
            "url": "http://127.0.0.1:9",
            "key": "00" * 32,
            "seed": str(number),
            "now": self._clock().timestamp() * 1_000,
            "more": False,
        }
        (found,) = ask_node([("feed_next", asked)])
        file.unlink()
        return dict(found)
