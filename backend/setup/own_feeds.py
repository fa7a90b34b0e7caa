"""Runs a server and a device on this machine for one reader's own feeds.

Nothing is simulated and nothing is reported: the pool is on this machine, so the device selects articles from it
itself. The only requests that leave this machine are those for the feeds and their pictures, at a pace that doesn't
depend on what is read.
"""

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import httpx
import platformdirs

from backend.db.engine import migrate, open_engine
from backend.news.errors import FeedRefused
from backend.news.feed_scheduler import JITTER
from backend.news.followed_feeds import FollowedFeed, FollowedFeeds
from backend.news.opml import RefusedSubscription, Subscription
from backend.news.public_addresses import networks
from backend.news.sections import section_named
from backend.server.local_processes import LOOPBACK, LocalPlan, LocalProcesses, StartRefused, link_of
from backend.server.progress import Steps
from backend.settings import BackendSettings, load_settings
from protocol.private_files import write_file

LEAST_EVERY_MINUTES = 2.0
PICTURES_BYTES = 60_000_000
"""Pictures of one reader's feeds that are kept: of some 2,500 cards, then of 900 in texts. Device and server are on one
machine."""
ON_OFFER_MINUTES = 0.75
"""Time from a feed's answer to the device's offer: the scheduler's check, vectors, index, and the device's poll."""

READER_DEVICE = {
    "OWNFEED_DEVICE_OWN_FEEDS": "true",
    # The pool is on this machine: the device runs recall itself, reports nothing, and has no other devices to count
    # with.
    "OWNFEED_DEVICE_PRIVACY__MODE": "broadcast",
    "OWNFEED_DEVICE_PRIVACY__COUNTING": "false",
    "OWNFEED_DEVICE_PERFORMANCE__SYNC_POLL_SEC": "5",
}


@dataclass(frozen=True)
class ReaderPlan(LocalPlan):
    """The folder and settings of one reader's own feeds.

    every_minutes: maximum time until a new article of a feed is on offer, unless the feed's server requires longer
    pauses; None: each feed is read as often as it publishes, within the settings' bounds. networks: non-public networks
    that feeds may be fetched from, besides those of the settings. pictures: of all feeds, whether their publishers' are
    fetched and shown; None leaves each feed unchanged, and allows those of newly followed ones unless no earlier feed
    may. A reader of feeds expects them: a comic is its picture. The reader's own address requests them, all of them and
    when they are published, so that their hosts learn what is followed and nothing of what is read. lan: address and
    port on the home network where the pages are served too; None: nowhere.
    """

    name: ClassVar[str] = "reader"
    every_minutes: float | None = None
    networks: tuple[str, ...] = ()
    pictures: Literal["on", "off"] | None = None
    lan: str | None = None

    def __post_init__(self) -> None:
        if self.every_minutes is not None and not self.every_minutes >= LEAST_EVERY_MINUTES:
            raise StartRefused(f"--every must be at least {LEAST_EVERY_MINUTES:g} minutes.", field="every")
        try:
            networks(self.networks)
        except ValueError as broken:
            raise StartRefused(f"--allow-network: {broken}.", field="allow_network") from broken

    def environment(self) -> dict[str, str]:
        """Environment of the server's process."""
        return {
            "OWNFEED_BACKEND_DATA_DIR": str(self.data_dir / "backend"),
            "OWNFEED_BACKEND_COUNTS_EVERY_MINUTES": "0",
            "OWNFEED_BACKEND_FEED_NETWORKS": json.dumps((*load_settings().feed_networks, *self.networks)),
            "OWNFEED_BACKEND_PICTURES_SERVED_BYTES": str(PICTURES_BYTES),
            "OWNFEED_BACKEND_PICTURES_EVERY_MINUTES": "0.5",
            "OWNFEED_BACKEND_OWN_FEEDS_TOKEN_FILE": str(self.token_file),
            **self._pace(),
        }

    def device_environment(self) -> dict[str, str]:
        """Environment of the device's process."""
        return READER_DEVICE | {
            "OWNFEED_DEVICE_BACKEND_URL": self.backend_url,
            "OWNFEED_DEVICE_OWN_FEEDS_TOKEN_FILE": str(self.token_file),
            **({} if self.lan is None else {"OWNFEED_DEVICE_LAN": self.lan}),
        }

    @property
    def profile_dir(self) -> Path:
        """Folder of the reader's profile."""
        return self.data_dir / "devices" / "reader"

    @property
    def token_file(self) -> Path:
        """File with the token of this start, by which the device manages the feeds of its server."""
        return self.data_dir / "ownfeed.token"

    def _pace(self) -> dict[str, str]:
        if self.every_minutes is None:
            return {}
        minutes = f"{(self.every_minutes - ON_OFFER_MINUTES) / (1 + JITTER):.3f}"
        return {
            "OWNFEED_BACKEND_FEED_REFRESH_MINUTES": minutes,
            "OWNFEED_BACKEND_FEED_REFRESH_LONGEST_MINUTES": minutes,
        }

    def backend_settings(self) -> BackendSettings:
        """The same as settings, for the work before that process starts."""
        variables = self.environment()
        return load_settings(
            data_dir=self.data_dir / "backend",
            host=LOOPBACK,
            port=self.backend_port,
            counts_every_minutes=0,
            feed_networks=tuple(json.loads(variables["OWNFEED_BACKEND_FEED_NETWORKS"])),
            **{name.removeprefix("OWNFEED_BACKEND_").lower(): float(value) for name, value in self._pace().items()},
        )


def reader_folder() -> Path:
    """The default folder of `ownfeed read`."""
    return platformdirs.user_data_path("ownfeed", appauthor=False) / "read"


class StartLinks(NamedTuple):
    """The links that open feed and console, the feeds, and how many of the named ones are newly followed."""

    feed_url: str
    console_url: str
    feeds: list[FollowedFeed]
    added: int


def start_reading(
    plan: ReaderPlan, wanted: Sequence[Subscription], processes: LocalProcesses, steps: Steps
) -> StartLinks:
    """Follow the feeds and start both processes; the caller stops them.

    The pages show the newest stories while the server still reads the feeds and prepares the ranking of their stories.
    Without a feed the pages prompt for one. Raises StartRefused.
    """
    settings = plan.backend_settings()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    write_file(plan.token_file, secrets.token_urlsafe(32))
    # The device starts while the feeds are noted, and the server while the device still starts.
    device = ["device", "--profile", "reader", "--data-dir", str(plan.data_dir), "--port", str(plan.device_port)]
    processes.start("device", device, plan.device_environment())
    migrate(settings.database_url)
    engine = open_engine(settings.database_url)
    try:
        followed = FollowedFeeds(engine)
        shown = plan.pictures != "off" and followed.shows_pictures()
        added = follow_all(followed, wanted, pictures_of_new=shown).added
        for feed in followed.all() if plan.pictures is not None else ():
            followed.allow_pictures(feed.url, plan.pictures == "on")
        feeds = followed.all()
    finally:
        engine.dispose()
    with steps.step("Starting your server and your device"):
        processes.start("backend", ["serve", "--host", LOOPBACK, "--port", str(plan.backend_port)], plan.environment())
        processes.wait_until_served("device", plan.feed_url, answers=httpx.codes.FORBIDDEN)  # it asks for its key
        processes.wait_until_served("backend", f"{plan.backend_url}/v1/health")
    token = settings.admin_token_file.read_text(encoding="utf-8").strip()
    console_url = f"{plan.backend_url}/console?token={token}"
    return StartLinks(link_of(plan.data_dir, plan.feed_url), console_url, feeds, added)


class NewlyFollowed(NamedTuple):
    """How many feeds were added, and what could not be."""

    added: int
    refused: list[RefusedSubscription]


def follow_all(
    followed: FollowedFeeds, wanted: Iterable[Subscription], *, pictures: bool = False, pictures_of_new: bool = False
) -> NewlyFollowed:
    """Follow what is not followed yet, with its title, folder and site.

    pictures: allow the publishers' pictures of all wanted feeds, also of those already followed; an OPML file can't
    express it. pictures_of_new: only of those not followed yet. A feed in a folder with the name of a section gets that
    section.
    """
    added, refused = 0, list[RefusedSubscription]()
    for one in wanted:
        section = one.section or (section_named(one.folder[-1]) if one.folder else None)
        try:
            if followed.find(one.url) is None:
                followed.add(
                    one.url, datetime.now(UTC), section, pictures or pictures_of_new,
                    title=one.title, folder=one.folder, site=one.site,
                )  # fmt: skip
                added += 1
            elif pictures:
                followed.allow_pictures(one.url, True)
        except FeedRefused as why:
            where = f"line {one.line}" if one.line else "address"
            refused.append(RefusedSubscription(where, one.url, why.why))
    return NewlyFollowed(added, refused)
