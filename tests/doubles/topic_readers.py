"""Readers of one topic, on the Python device without HTTP and, from a copy of its store, on the browser's device.

Reports are sent as by default, with noise; the answer is the last one when the pages are made.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from device_app.composition import build_device
from device_app.device import Device
from device_app.privacy.noise_sources import SeededNoise
from device_app.privacy.settings import ModeName
from device_app.settings import DeviceSettings, PerformanceSettings, PrivacySettings
from protocol.news import NewsCard
from tests.doubles.backend import FakeBackend
from tests.doubles.news import NOW

READS, PAGES = 5, 3
LEAST, MOST, SECTION_MOST = 0.30, 0.45, 0.5
"""Shares of a page: of a topic read five times, and of any section."""


@dataclass(frozen=True)
class ReaderPages:
    """What the browser's device is asked with, and the Python device's pages: (slot, card) in order."""

    topic: tuple[str, str]
    asked: dict[str, Any]
    pages: tuple[tuple[tuple[str, NewsCard], ...], ...]
    read: tuple[NewsCard, ...]

    @property
    def shares(self) -> list[float]:
        """The topic's share of each page."""
        return [sum((card.section, card.topic) == self.topic for _, card in page) / len(page) for page in self.pages]

    @property
    def sections(self) -> list[float]:
        """The greatest share of a section on each page, and among its personal places."""
        columns = [[one for one in page if one[0] in ("lead", "for_you")] for page in self.pages]
        return [max(Counter(card.section for _, card in part).values()) / len(part) for part in (*self.pages, *columns)]

    @property
    def leads_again(self) -> list[str]:
        """Leads that were on an earlier page, or report an event that was read."""
        events = {card.story for card in self.read if card.story}
        seen: set[str] = set()
        again = []
        for page in self.pages:
            lead = next(card for slot, card in page if slot == "lead")
            if lead.id in seen or lead.story in events:
                again.append(lead.id)
            seen |= {card.id for _, card in page}
        return again

    @property
    def repeated(self) -> list[float]:
        """Share of each further page that was on an earlier one, beside the read section, whose stories may run out."""
        seen: set[str] = set()
        shares = []
        for page in self.pages:
            shares.append(sum(card.id in seen and card.section != self.topic[0] for _, card in page) / len(page))
            seen |= {card.id for _, card in page}
        return shares[1:]

    @property
    def is_steady(self) -> bool:
        """Whether the topic keeps its share on every page, and no section has more than half."""
        return min(self.shares) >= LEAST and max(self.shares) <= MOST and max(self.sections) <= SECTION_MOST


class TopicReaders:
    """Makes readers over one backend in memory that offers codes of its pool."""

    def __init__(self, backend: FakeBackend, folder: Path, *, listed: int, now: datetime = NOW) -> None:
        """listed: the length of the default list. now: the time on every clock."""
        self._backend, self._folder, self._listed, self._now = backend, folder, listed, now
        first = self._device("synced", 0, "interest")
        first.sync()
        assert first.whole_pool.size() == len(backend.pool.cards)
        self._synced = first.settings.home
        first.close()

    @property
    def blobs(self) -> tuple[str, list[str]]:
        """The question that gives the browser's end the release's graphs and weights."""
        return "feed_blobs", [file.as_uri() for file in sorted((self._synced / "blobs").iterdir())]

    def pages_of(self, section: str, topic: str, seed: int, mode: ModeName = "interest") -> ReaderPages:
        """Let a reader open READS stories of a topic and then make PAGES pages, each seen from top to bottom."""
        name = f"{sha256(f'{section} {topic}'.encode()).hexdigest()[:8]}-{seed}-{mode}"
        cards = self._backend.pool.cards
        of_topic = [card for card in cards if (card.section, card.topic) == (section, topic)]
        with_device = self._device(name, seed, mode)
        try:
            stores = with_device.parts.stores
            read = random.Random(seed).sample(of_topic, READS)
            with_device.whole_pool.show(read)
            for card in read:
                stores.clicks.add(card.id, None, self._now)
                stores.read_marks.opened(card.id, self._now)
            with_device.recall_step()
        finally:
            with_device.close()
        file = self._folder / f"{name}.sqlite"
        copied(with_device.settings.database, file)
        before = len(self._backend.requests)
        device = self._device(name, seed, mode)
        try:
            pages = tuple(self._page(device) for _ in range(PAGES))
        finally:
            device.close()
            shutil.rmtree(device.settings.home)
        assert len(self._backend.requests) == before, "a page asks for nothing"
        asked = {
            "file": file.as_uri(),
            "searches": None,
            "privacy": device.settings.privacy.model_dump(),
            "url": "http://127.0.0.1:9",
            "key": "00" * 32,
            "seed": str(seed),
            "now": self._now.timestamp() * 1_000,
            "more": False,
            "pages": PAGES,
        }
        return ReaderPages((section, topic), asked, pages, tuple(read))

    def _page(self, device: Device) -> tuple[tuple[str, NewsCard], ...]:
        feed = device.reading.feed(refresh=True)
        device.parts.stores.impressions.view(feed.feed_id, [item.card.id for item in feed.items], self._now)
        return tuple((item.slot, item.card) for item in feed.items)

    def _device(self, name: str, seed: int, mode: ModeName) -> Device:
        settings = DeviceSettings(
            profile=name,
            data_dir=self._folder,
            privacy=PrivacySettings(mode=mode),
            performance=PerformanceSettings(default_list_limit=self._listed, watch_backend=False),
        )
        if name != "synced" and not settings.home.exists():
            shutil.copytree(self._synced, settings.home)
        return build_device(
            settings,
            transport=self._backend.transport(),
            noise=SeededNoise(seed),
            chance=random.Random(seed),
            clock=lambda: self._now,
        )


def copied(database: Path, file: Path) -> None:
    """Copy a closed device's store into one file."""
    shutil.copyfile(database, file)
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
