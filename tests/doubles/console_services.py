"""Stand-ins for the services behind the operator's console.

Plausible figures, and a record of what was requested.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import OwnfeedError
from backend.news.discovery import DiscoveredFeed
from backend.news.feed_addresses import checked_url
from backend.news.followed_feeds import FollowedFeed
from backend.news.ingest_runs import IngestSummary
from backend.news.item import Rejection
from backend.news.pictures.store import PictureCounts
from backend.news.pool_reading import PoolRow
from backend.news.pool_version import PoolCounts
from backend.popularity.estimate import NoisyCounts
from backend.popularity.store import CountSummary
from backend.recall.indexes.selection import IndexStatus
from backend.releases.blobs import ReleaseDraft
from backend.releases.store import PublishedRelease
from backend.server.latency import LatencyLog
from protocol.releases import BlobRef, ModelEntry, RecallProtocol, ReleaseManifest
from tests.doubles.console_rounds import StandInBackfill, StandInCoordinator

NOW = datetime.now(UTC)
TOKEN = "the-operators-token"
SECTIONS = {"city": 410, "culture": 350, "economy": 402, "health": 377, "politics": 455, "science": 366, "sport": 471}
REJECTED = (
    Rejection(17, "title", "String should have at least 1 character"),
    Rejection(204, "published_at", "Input should have timezone info"),
)


class NoSuchNews(OwnfeedError):
    """The pool's error for an unknown id."""

    code, status, title = "unknown-news", 404, "No such article"


@dataclass
class StandInCatalogue:
    """The figures of a catalogue."""

    encoder: str = "a" * 64
    size: int = 5_811
    without_vector: int = 0
    status: IndexStatus = field(default_factory=lambda: IndexStatus("exact", 5_811, None))
    built_at: datetime = NOW - timedelta(minutes=3)
    build_sec: float = 0.41
    counted: int = 7
    keys: NDArray[np.int64] = field(default_factory=lambda: np.arange(3))
    lifts: NDArray[np.float32] = field(default_factory=lambda: np.array([0.9, 0.1, -0.4], dtype=np.float32))
    cards: tuple[bytes, ...] = tuple(
        json.dumps({"title": title, "section": "sea"}).encode()
        for title in ("Dredging of the east basin begins", "A quiet week in the docks", "Ferry fares stay as they are")
    )

    @property
    def newest_at(self) -> datetime | None:
        """The publication time of its newest article."""
        return NOW - timedelta(minutes=9) if self.size else None

    def __len__(self) -> int:
        return self.size


@dataclass
class StandInLive:
    """Holds one catalogue."""

    current: StandInCatalogue


@dataclass
class StandInCounts:
    """Two counts of three articles; noise has made the last one negative."""

    none_yet: bool = False
    half_life_hours: float = 24.0

    def made(self, limit: int = 20) -> list[CountSummary]:
        """Return both counts, newest first."""
        made = [
            CountSummary(7, NOW - timedelta(hours=1), 58, 3, 2_000.0, 68.0),
            CountSummary(3, NOW - timedelta(days=1), 44, 3, 1_500.0, 51.0),
        ]
        return [] if self.none_yet else made

    def counted(self, numbers: NDArray[np.int64], now: datetime) -> tuple[NoisyCounts, NDArray[np.bool_]]:
        """Return their sums."""
        clicks, displays = np.array([61.2, 9.8, -4.1]), np.array([212.0, 88.0, 120.0])
        return NoisyCounts(clicks, displays, np.full(3, 68.0), np.full(3, 2_000.0)), np.ones(3, dtype=bool)


@dataclass
class StandInPool:
    """Two sources, one of which fails, and two articles with the same content."""

    empty: bool = False
    taken_down: list[str] = field(default_factory=list)

    def counts(self) -> PoolCounts:
        """Counts of the pool."""
        if self.empty:
            return PoolCounts(0, 0, 0, 0, {}, {}, {})
        sources = {"newsroom": 5_800, "https://courant.example/rss.xml": 31}
        return PoolCounts(412, 5_831, 20, len(self.taken_down), sources, SECTIONS, {"a" * 64: 5_831})

    def ingests(self, limit: int = 20) -> list[IngestSummary]:
        """Return ingest runs, newest first."""
        if self.empty:
            return []
        broken = "the feed is HTML, not RSS or Atom"
        return [
            IngestSummary(
                "https://courant.example/rss.xml", NOW - timedelta(minutes=40), 1.2, 0, 0, 0, 0, 0, 0, broken
            ),
            IngestSummary("newsroom", NOW - timedelta(hours=2), 6.4, 5_800, 0, 0, 20, 0, 3, None, REJECTED),
        ][:limit]

    def live(self, now: datetime) -> list[PoolRow]:
        """Return two rows, the second a duplicate of the first."""
        title, day = "Dredging of the east basin begins a year early", now - timedelta(hours=4)
        rows = (("n:1", "Harbour Courant", None), ("n:2", "Evening Post", "n:1"))
        return [
            PoolRow(at, news_id, title, "", "", publisher, "sea", "ports", None, day, 0.5, original)
            for at, (news_id, publisher, original) in enumerate(rows)
            if news_id not in self.taken_down
        ]

    def take_down(self, news_id: str) -> None:
        """Record what was taken down."""
        if news_id not in ("n:1", "n:2"):
            raise NoSuchNews(f"There is no news {news_id[:80]}.", field="news_id")
        self.taken_down.append(news_id)


@dataclass
class StandInFeeds:
    """Two followed feeds, one of which fails, and a record of what was requested."""

    empty: bool = False
    is_on: bool = True
    changed: list[tuple[str, str]] = field(default_factory=list)
    woken: int = 0

    @property
    def followed(self) -> StandInFeeds:
        """This stub is also the store of followed feeds."""
        return self

    def all(self) -> list[FollowedFeed]:
        """Return one feed that works, one that fails."""
        well = FollowedFeed(
            "https://courant.example/rss.xml", "https://courant.example/rss.xml", NOW, NOW - timedelta(minutes=40),
            NOW + timedelta(minutes=3), 0, None, False, pictures=True,
        )  # fmt: skip
        broken = FollowedFeed(
            "https://post.example/feed", "https://post.example/feed", NOW, None, NOW + timedelta(hours=3), 4,
            "https://post.example/feed can't be read: the server answered 500.", False,
        )  # fmt: skip
        return [] if self.empty else [well, broken]

    def removed(self) -> list[FollowedFeed]:
        """Return one feed that was removed."""
        url = "https://old.example/feed"
        gone = FollowedFeed(url, url, NOW, None, NOW, 0, None, False, title="Old Times", removed_at=NOW)
        return [] if self.empty else [gone]

    def find(self, pasted: str) -> list[DiscoveredFeed]:
        """Return two feeds for a site, and any other address as a feed."""
        if pasted == "site.example":
            newest = (("The ferry sails", NOW), ("Undated", None))
            urls = ("https://site.example/posts", "https://site.example/notes")
            return [DiscoveredFeed(url, url[-5:].title(), newest=newest) for url in urls]
        return [DiscoveredFeed(checked_url(pasted), "New")]

    def rename(self, url: str, title: str) -> None:
        """Record the request."""
        self.changed.append((f"rename {title}", url))

    def move_to(self, url: str, folder: Sequence[str]) -> None:
        """Record the request."""
        self.changed.append((f"folder {' > '.join(folder)}", url))

    def sort_into(self, url: str, section: str | None, now: datetime) -> None:
        """Record the request."""
        self.changed.append((f"section {section}", url))

    def check_certificate(self, url: str, checked: bool, now: datetime) -> None:
        """Record the request."""
        self.changed.append((f"certificate {checked}", url))

    def read_through(self, url: str, proxy: str | None, now: datetime) -> None:
        """Record the request."""
        self.changed.append((f"proxy {proxy}", url))

    def restore(self, url: str, now: datetime) -> None:
        """Record the request."""
        self.changed.append(("restore", url))

    def ask_now(self, now: datetime, url: str | None = None) -> None:
        """Record the request."""
        self.changed.append(("ask now", url or "all"))

    def one(self, url: str) -> FollowedFeed:
        """Return the feed of that address."""
        return next(feed for feed in self.all() if feed.url == url)

    def add(self, url: str, now: datetime, section: str | None = None, pictures: bool = False) -> None:
        """Record the request, if it is an address that may be followed."""
        self.changed.append(("add", checked_url(url)))
        if pictures:
            self.changed.append(("pictures on", url))

    def allow_pictures(self, url: str, allowed: bool) -> None:
        """Record the request."""
        self.changed.append((f"pictures {'on' if allowed else 'off'}", url))

    def pause(self, url: str) -> None:
        """Record the request."""
        self.changed.append(("pause", url))

    def resume(self, url: str, now: datetime) -> None:
        """Record the request."""
        self.changed.append(("resume", url))

    def remove(self, url: str, now: datetime) -> None:
        """Record the request."""
        self.changed.append(("remove", url))

    def wake(self) -> None:
        """Record the request."""
        self.woken += 1


@dataclass
class StandInPictures:
    """Two stored pictures, and one that couldn't be fetched."""

    woken: int = 0

    @property
    def store(self) -> StandInPictures:
        """Return itself as the store of pictures."""
        return self

    def counts(self, reasons: int = 0) -> PictureCounts:
        """Return counts as `PictureRepository` does."""
        why = ("https://courant.example/ferry.svg", "refused", "It is not a JPEG, PNG, WebP or GIF.")
        return PictureCounts({"made": 2, "refused": 1}, 17_204, [why][:reasons])

    def wake(self) -> None:
        """Record the request."""
        self.woken += 1


@dataclass
class StandInReleases:
    """Releases r1 to r3."""

    none_yet: bool = False
    committed: list[str] = field(default_factory=list)

    def manifest(self, release: str) -> ReleaseManifest:
        """Return one release at the paper's values."""
        blob = BlobRef(sha256="b" * 64, size_bytes=980_000)
        model = ModelEntry(architecture="basis", role="recall", graphs={"context": blob}, weights=blob)
        ranker = ModelEntry(architecture="cosine", role="ranker", graphs={"score": blob})
        return ReleaseManifest(
            release=release,
            previous=None,
            created_at=NOW,
            encoder="a" * 64,
            dimensions=256,
            opset=20,
            recall=RecallProtocol(
                basis_size=30, channels_limit=5, cluster_distance=0.93, score_clip=0.2, score_noise=1.2
            ),
            models={"recall": model, "ranker.cosine": ranker, "ranker.nrms": ranker},
            default_ranker="ranker.cosine",
        )

    def current_manifest(self) -> ReleaseManifest | None:
        """Return the newest release."""
        return None if self.none_yet else self.manifest("r3")

    def require_current(self) -> ReleaseManifest:
        """Return the newest release."""
        return self.manifest("r3")

    def require_kept(self, release: str) -> ReleaseManifest:
        """Accept every release."""
        return self.manifest(release)

    def history(self) -> list[PublishedRelease]:
        """Return releases, newest first, with measurements."""
        facts = {"mean_channels": 3.4, "cluster_distance": 0.931, "updates": 60, "update_norm": 0.0312}
        return [
            PublishedRelease(
                f"r{number}", f"r{number - 1}" if number > 1 else None, NOW - timedelta(hours=5 * (3 - number)),
                "averaged from round-7" if number > 1 else "first release", facts, "a" * 64, 1_910_000, number == 3,
                True,
            )
            for number in (3, 2, 1)
            if not self.none_yet
        ]  # fmt: skip

    def weights(self, manifest: ReleaseManifest, model: str) -> dict[str, NDArray[np.float32]]:
        """Return 245,000 parameters."""
        return {"values": np.zeros((490, 500), np.float32)}

    def commit(self, draft: ReleaseDraft, *, note: str, **_: Any) -> ReleaseManifest:
        """Record the note."""
        self.committed.append(note)
        return self.manifest("r4")


def latency_log() -> LatencyLog:
    """Three hundred recalls and fifty default lists around plausible times, by a seeded draw."""
    chance, log = Random(5), LatencyLog(2_000)
    base = {"decode": 0.2, "aggregate": 0.06, "search": 0.6, "merge": 0.3, "encode": 1.1}
    for _ in range(300):
        stages = {name: ms * chance.lognormvariate(0, 0.4) for name, ms in base.items()}
        log.record("recall", stages, sum(stages.values()) + 0.4)
    for _ in range(50):
        log.record("front", {}, chance.lognormvariate(1, 0.3))
    return log


@dataclass
class StandInConsoleSettings:
    """The settings that the console reads."""

    fleet_figures: Path | None = None
    data_dir: Path = Path("nowhere")
    pictures_served_bytes: int = 4_000_000
    rounds_wait_for_devices: bool = False
    host: str = "127.0.0.1"
    port: int = 8400


@dataclass
class StandInServices:
    """The services that the console's router takes."""

    pool: StandInPool = field(default_factory=StandInPool)
    live: StandInLive = field(default_factory=lambda: StandInLive(StandInCatalogue()))
    releases: StandInReleases = field(default_factory=StandInReleases)
    coordinator: StandInCoordinator = field(default_factory=StandInCoordinator)
    latency: LatencyLog = field(default_factory=latency_log)
    counts: StandInCounts = field(default_factory=StandInCounts)
    admin_token: str = TOKEN
    feeds: StandInFeeds = field(default_factory=StandInFeeds)
    pictures: StandInPictures = field(default_factory=StandInPictures)
    backfill: StandInBackfill = field(default_factory=StandInBackfill)
    settings: StandInConsoleSettings = field(default_factory=StandInConsoleSettings)


def fresh_services() -> StandInServices:
    """A fresh backend: nothing ingested, published, run or requested."""
    return StandInServices(
        StandInPool(empty=True),
        StandInLive(StandInCatalogue(size=0, status=IndexStatus("exact", 0, None))),
        StandInReleases(none_yet=True),
        StandInCoordinator(under_way=False),
        LatencyLog(10),
        StandInCounts(none_yet=True),
        feeds=StandInFeeds(empty=True),
    )
