"""One person, their own feeds: a backend and a device on this machine for one reader, and nobody else.

Nothing is simulated and nothing reported: the pool is here, so the device looks for its news in it itself. What leaves
this machine are the requests for the feeds, to their publishers, at a pace that doesn't depend on what is read.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import httpx
import platformdirs

from backend.db.engine import migrate, open_engine
from backend.errors import OwnfeedError
from backend.first_start_process import FirstStartProcess
from backend.local_processes import LOOPBACK, LocalPlan, LocalProcesses, StartRefused, link_of
from backend.news.errors import FeedRefused
from backend.news.feed_scheduler import JITTER, FeedScheduler
from backend.news.followed_feeds import FollowedFeed, FollowedFeeds, checked_url
from backend.news.pool import NewsPool
from backend.opml import Subscription, read_opml
from backend.progress import Steps
from backend.public_addresses import networks
from backend.releases.between_rounds import is_published
from backend.sections.taxonomy import section_named
from backend.settings import BackendSettings, load_settings

FIRST_READ_SEC = 25.0
"""The first page waits so long for feeds; those that have not answered by then are read while it is there already."""
GIVEN_UP_WITHIN_SEC = 3.0
"""Downloads end so soon when they are given up; a server that doesn't even answer is left to its own timeout."""
LEAST_EVERY_MINUTES = 2.0
PICTURES_BYTES = 24_000_000
"""Of the feeds of one reader all pictures are taken, some 2,500: device and backend are on one machine."""
ON_OFFER_MINUTES = 0.75
"""From a feed's answer to the device's offer: the scheduler's look, vectors, index, and the device's own look."""

READER_DEVICE = {
    "OWNFEED_DEVICE_OWN_FEEDS": "true",
    # The pool is on this machine: recall is the device's own, nothing is reported, and there is nobody to count with.
    "OWNFEED_DEVICE_PRIVACY__MODE": "broadcast",
    "OWNFEED_DEVICE_PRIVACY__COUNTING": "false",
    "OWNFEED_DEVICE_PERFORMANCE__SYNC_POLL_SEC": "5",
}


class FeedsUnreadable(OwnfeedError):
    """None of the feeds could be read, and there is no earlier news to show."""

    code, status, title = "feeds-unreadable", 502, "None of the feeds could be read"


@dataclass(frozen=True)
class ReaderPlan(LocalPlan):
    """Where one reader's own feeds live.

    every_minutes: a new story is on offer so long after its feed has it, at most, where its server doesn't ask for
    longer pauses. networks: not public, and feeds may be fetched from them all the same, besides the settings' own.
    pictures: of all feeds, whether their publishers' are fetched and shown; None leaves each feed as it is. They are
    off until the reader wants them: they mostly lie on other hosts than the feed, and here it is the reader's own
    address that asks these, where a publisher's backend asks for many readers.
    """

    name: ClassVar[str] = "reader"
    every_minutes: float = 15.0
    networks: tuple[str, ...] = ()
    pictures: Literal["on", "off"] | None = None

    def __post_init__(self) -> None:
        if not self.every_minutes >= LEAST_EVERY_MINUTES:
            raise StartRefused(f"--every must be at least {LEAST_EVERY_MINUTES:g} minutes.", field="every")
        try:
            networks(self.networks)
        except ValueError as broken:
            raise StartRefused(f"--allow-network: {broken}.", field="allow_network") from broken

    def environment(self) -> dict[str, str]:
        """What the backend's process is told."""
        return {
            "OWNFEED_BACKEND_DATA_DIR": str(self.data_dir / "backend"),
            "OWNFEED_BACKEND_COUNTS_EVERY_MINUTES": "0",
            "OWNFEED_BACKEND_FEED_REFRESH_MINUTES": f"{(self.every_minutes - ON_OFFER_MINUTES) / (1 + JITTER):.3f}",
            "OWNFEED_BACKEND_FEED_NETWORKS": json.dumps((*load_settings().feed_networks, *self.networks)),
            "OWNFEED_BACKEND_PICTURES_SERVED_BYTES": str(PICTURES_BYTES),
            "OWNFEED_BACKEND_PICTURES_EVERY_MINUTES": "0.5",
        }

    def backend_settings(self) -> BackendSettings:
        """The same as settings, for what is done before that process is there."""
        told = self.environment()
        return load_settings(
            data_dir=self.data_dir / "backend",
            host=LOOPBACK,
            port=self.backend_port,
            counts_every_minutes=0,
            feed_refresh_minutes=float(told["OWNFEED_BACKEND_FEED_REFRESH_MINUTES"]),
            feed_networks=tuple(json.loads(told["OWNFEED_BACKEND_FEED_NETWORKS"])),
        )


def reader_folder() -> Path:
    """Where `ownfeed read` keeps everything, if nothing else is said."""
    return platformdirs.user_data_path("ownfeed", appauthor=False) / "read"


class Started(NamedTuple):
    """The links that open feed and console, the feeds, and how many of those named are followed newly."""

    feed_url: str
    console_url: str
    feeds: list[FollowedFeed]
    added: int


def subscriptions(named: Sequence[str]) -> list[Subscription]:
    """The feeds that a command line names: addresses, and files of OPML. Raises FeedRefused or OpmlRefused.

    An address in a file that can't be followed is refused with its line.
    """
    found: dict[str, Subscription] = {}
    for name in named:
        for one in [Subscription(name)] if "://" in name else read_opml(Path(name)):
            try:
                checked_url(one.url)
            except FeedRefused as refused:
                where = f"{name}, line {one.line}: " if one.line else ""
                raise StartRefused(f"{where}{refused.detail}", field="url") from refused
            found.setdefault(one.url, one)
    return list(found.values())


def start_reading(
    plan: ReaderPlan,
    wanted: Sequence[Subscription],
    processes: LocalProcesses,
    steps: Steps,
    transport: httpx.BaseTransport | None = None,
) -> Started:
    """Follow the feeds, prepare what is missing, and start both; the caller stops the processes.

    transport: as in `backend.news.sources.download.fetch`, of the first read.
    Raises StartRefused where no feed is followed, FeedsUnreadable where there is no news to begin with.
    """
    settings = plan.backend_settings()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    migrate(settings.database_url)
    engine = open_engine(settings.database_url)
    pool, followed = NewsPool(engine), FollowedFeeds(engine)
    added = follow_all(followed, wanted)
    for feed in followed.all() if plan.pictures is not None else ():
        followed.allow_pictures(feed.url, plan.pictures == "on")
    if not followed.all():
        raise StartRefused("No feed is followed yet: name an OPML file, or the addresses of feeds.", field="sources")
    device = ["device", "--profile", "reader", "--data-dir", str(plan.data_dir), "--port", str(plan.device_port)]
    # A device serves what it has without a backend, so it need not wait for one.
    processes.start("device", device, {"OWNFEED_DEVICE_BACKEND_URL": plan.backend_url} | READER_DEVICE)
    with ExitStack() as started:
        # What needs no news is prepared while the feeds are read.
        preparing = None if is_published(engine) else started.enter_context(FirstStartProcess(settings, waits=True))
        if added or not pool.live(datetime.now(UTC)):
            scheduler = FeedScheduler(
                engine,
                pool,
                every=timedelta(minutes=settings.feed_refresh_minutes),
                allowed=networks(settings.feed_networks),
                transport=transport,
            )
            read_first(scheduler, steps)
        if not pool.live(datetime.now(UTC)):
            raise FeedsUnreadable(f"There is no news yet. {why_none(followed.all())}")
        if preparing is not None:
            preparing.news_are_here()
            preparing.follow(steps)
    with steps.step("Starting the backend and your device"):
        processes.start("backend", ["serve", "--host", LOOPBACK, "--port", str(plan.backend_port)], plan.environment())
        processes.wait_until_served("backend", f"{plan.backend_url}/v1/health")
        processes.wait_until_served("device", plan.feed_url, answers=httpx.codes.FORBIDDEN)  # it asks for its key
    token = settings.admin_token_file.read_text(encoding="utf-8").strip()
    console_url = f"{plan.backend_url}/console?token={token}"
    return Started(link_of(plan.data_dir, plan.feed_url), console_url, followed.all(), added)


def follow_all(followed: FollowedFeeds, wanted: Iterable[Subscription], *, pictures: bool = False) -> int:
    """Follow what is not followed yet; how many that were. Raises FeedRefused beyond the limit of feeds.

    pictures: of all that are wanted, those followed already included, the publishers' may be shown; a file of OPML
    can't say so.

    A feed in a folder that is called like a section has that section; any other folder says nothing.
    """
    known = {feed.url for feed in followed.all()}
    new = [one for one in wanted if one.url not in known]
    for one in new:
        followed.add(one.url, datetime.now(UTC), one.section or section_named(one.folder), pictures)
    for one in wanted if pictures else ():
        followed.allow_pictures(one.url, True)
    return len(new)


def read_first(scheduler: FeedScheduler, steps: Steps) -> None:
    """Read the feeds that are due, for so long at most; what was given up stays due, for the server to read."""
    due = {feed.url for feed in scheduler.followed.due(datetime.now(UTC))}
    reading = threading.Thread(target=scheduler.step, name="first-read", daemon=True)
    with steps.step("Reading your feeds") as advance:
        reading.start()
        waited = 0.0
        while reading.is_alive() and waited < FIRST_READ_SEC:
            reading.join(0.25)
            waited += 0.25
            left = {feed.url for feed in scheduler.followed.due(datetime.now(UTC))}
            advance(len(due - left), len(due))
        scheduler.stop()
        reading.join(GIVEN_UP_WITHIN_SEC)


def why_none(feeds: Sequence[FollowedFeed]) -> str:
    """Why there is no news, in a sentence or two."""
    failed = [feed for feed in feeds if feed.error]
    if not failed:
        return f"None of {len(feeds)} feeds has answered yet; the next start goes on from here."
    return f"{len(failed)} of {len(feeds)} feeds could not be read. The first: {failed[0].error}"
