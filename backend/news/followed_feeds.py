"""Follows RSS and Atom feeds: remembers what their servers said last, and takes what is new into the pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
from sqlalchemy import Connection, Engine, case, delete, func, insert, select, update

from backend.db.engine import reading, writing
from backend.db.tables import FeedRow
from backend.news.batch import SOURCE_CHARS
from backend.news.errors import FeedNotFollowed, FeedRefused
from backend.news.ingest import Progress, ingest
from backend.news.pool import NewsPool
from backend.news.report import IngestReport
from backend.news.sources.download import NotModified, Validators, fetch
from backend.news.sources.rss import read_feed
from backend.plain_text import shortened
from backend.public_addresses import PORTS_READ, IpNetwork, is_web_port

FEEDS_LIMIT = 1_000
URL_CHARS = 2_000
ERROR_CHARS = 500
SHOWN_CHARS = 80
"""Of a part of an address, in the refusal that names it."""
CLOCKS_APART = timedelta(minutes=1)
"""By which the clocks of two processes may differ, so that neither thinks that the other's was ahead."""
WAIT_LIMIT = timedelta(days=1)  # the longest wait after errors, and for a server's Retry-After or max-age


@dataclass(frozen=True, slots=True)
class FollowedFeed:
    """A feed as the console lists it; see `FeedRow`."""

    url: str
    added_at: datetime
    fetched_at: datetime | None
    due_at: datetime
    failures: int
    error: str | None
    paused: bool
    section: str | None = None
    pictures: bool = False


class Refreshed(NamedTuple):
    """What one look at a feed brought: None if its server says nothing has changed, and how long it calls it fresh."""

    report: IngestReport | None
    fresh_sec: float = 0.0


class FollowedFeeds:
    """The feeds that are followed, each with its validators for conditional GETs and the time it is due."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def last(self, url: str) -> Validators:
        """What the feed's server said when it was last taken whole; empty for a feed never seen."""
        with reading(self._engine) as connection:
            row = connection.execute(
                select(FeedRow.etag, FeedRow.last_modified).where(FeedRow.url == url)
            ).one_or_none()
        return Validators() if row is None else Validators(row.etag, row.last_modified)

    def all(self) -> list[FollowedFeed]:
        """Every feed, in the order of their addresses."""
        columns = [getattr(FeedRow, name) for name in FollowedFeed.__slots__]
        with reading(self._engine) as connection:
            return [FollowedFeed(**row._mapping) for row in connection.execute(select(*columns).order_by(FeedRow.url))]

    def due(self, now: datetime) -> list[FollowedFeed]:
        """The feeds to refresh at `now`, the longest due first; none that is paused."""
        return sorted((one for one in self.all() if one.due_at <= now and not one.paused), key=lambda one: one.due_at)

    def put_right(self, now: datetime, furthest: timedelta) -> int:
        """Make feeds due that a clock ahead of `now` has put off, and return how many those were.

        Its traces are an answer that came later than now, and a feed that is due later than `furthest`, the longest
        wait there is. One that failed under such a clock may stay put off by as much as that.
        """
        later = FeedRow.fetched_at > now + CLOCKS_APART
        put_off = later | (FeedRow.due_at > now + furthest + CLOCKS_APART)
        # The answer came now at the latest. As it is, a feed that fails from here on would be due at every look.
        values = {"due_at": now, "fetched_at": case((later, now), else_=FeedRow.fetched_at)}
        with reading(self._engine) as connection:
            if not connection.execute(select(func.count()).where(put_off)).scalar_one():
                return 0
        with writing(self._engine) as connection:
            return connection.execute(update(FeedRow).where(put_off).values(values)).rowcount

    def add(self, url: str, now: datetime, section: str | None = None, pictures: bool = False) -> None:
        """Follow a feed from now on; due at once. section: of all its news. Raises FeedRefused."""
        with writing(self._engine) as connection:
            if not self._added(connection, checked_url(url), now, section, pictures):
                raise FeedRefused("it is followed already")

    def allow_pictures(self, url: str, allowed: bool) -> None:
        """Let its publisher's pictures be fetched and shown, or no longer. Raises FeedNotFollowed."""
        self._change(url, {"pictures": allowed})

    def sort_into(self, url: str, section: str | None, now: datetime) -> None:
        """Give its news this section, or each its vector's, by reading it again at once. Raises FeedNotFollowed."""
        self._change(url, {"section": section, "due_at": now, "etag": None, "last_modified": None})

    def pause(self, url: str) -> None:
        """Refresh it no more until `resume`. Raises FeedNotFollowed."""
        self._change(url, {"paused": True})

    def resume(self, url: str, now: datetime) -> None:
        """Go on, at once, as if it had never failed. Raises FeedNotFollowed."""
        self._change(url, {"paused": False, "due_at": now, "failures": 0, "error": None})

    def remove(self, url: str) -> None:
        """Follow it no more; its news stay. Raises FeedNotFollowed."""
        with writing(self._engine) as connection:
            if not connection.execute(delete(FeedRow).where(FeedRow.url == url)).rowcount:
                raise FeedNotFollowed

    def keep(self, url: str, validators: Validators, at: datetime, due_at: datetime) -> None:
        """Follow a feed whose news of this moment are all in the pool."""
        with writing(self._engine) as connection:
            self._added(connection, checked_url(url), at)
        self.answered(url, at=at, due_at=due_at, validators=validators)

    def answered(self, url: str, *, at: datetime, due_at: datetime, validators: Validators | None = None) -> None:
        """Note an answer, with validators where all its news are in the pool; nothing for a feed removed meanwhile."""
        values: dict[str, Any] = {"fetched_at": at, "due_at": due_at, "failures": 0, "error": None}
        if validators is not None:
            values |= validators._asdict()
        with writing(self._engine) as connection:
            connection.execute(update(FeedRow).where(FeedRow.url == url).values(values))

    def failed(self, url: str, error: str, *, failures: int, due_at: datetime) -> None:
        """Note a failure, the `failures`-th in a row; nothing for a feed removed meanwhile."""
        values = {"error": error[:ERROR_CHARS], "failures": failures, "due_at": due_at}
        with writing(self._engine) as connection:
            connection.execute(update(FeedRow).where(FeedRow.url == url).values(values))

    def _change(self, url: str, values: dict[str, Any]) -> None:
        with writing(self._engine) as connection:
            if not connection.execute(update(FeedRow).where(FeedRow.url == url).values(values)).rowcount:
                raise FeedNotFollowed

    def _added(
        self, connection: Connection, url: str, now: datetime, section: str | None = None, pictures: bool = False
    ) -> bool:
        """Whether the feed is new."""
        if connection.execute(select(FeedRow.url).where(FeedRow.url == url)).one_or_none() is not None:
            return False
        if connection.execute(select(func.count()).select_from(FeedRow)).scalar_one() >= FEEDS_LIMIT:
            raise FeedRefused(f"at most {FEEDS_LIMIT:,} feeds are followed")
        values = {"url": url, "added_at": now, "due_at": now, "section": section, "pictures": pictures}
        connection.execute(insert(FeedRow), values)
        return True


def checked_url(url: str) -> str:
    """An address that may be followed; where its name leads is checked at every fetch. Raises FeedRefused."""
    if len(url) > URL_CHARS:
        raise FeedRefused(f"it has more than {URL_CHARS:,} characters")
    if not url.isprintable() or " " in url:
        raise FeedRefused("it has blanks or control characters")
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets around what is no address of IPv6
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise FeedRefused("only whole addresses with http:// or https:// are followed")
    port = parts.netloc.rpartition("@")[2].rpartition("]")[2].partition(":")[2]
    if port and not (port.isascii() and port.isdigit() and is_web_port(int(port))):
        raise FeedRefused(f"its port is {shortened(port, SHOWN_CHARS)!r}; feeds are read from {PORTS_READ}", PORTS_READ)
    try:
        httpx.URL(url).host.encode()  # decodes the name, as the download will
    except (httpx.InvalidURL, ValueError) as broken:
        host = shortened(parts.hostname, SHOWN_CHARS)
        raise FeedRefused(f"{host!r} can't be the name or address of a server") from broken
    return url


def follow(
    pool: NewsPool,
    feeds: FollowedFeeds,
    location: str,
    *,
    now: datetime,
    due_at: datetime | None = None,
    progress: Progress | None = None,
    allowed: Sequence[IpNetwork] = (),
    transport: httpx.BaseTransport | None = None,
) -> IngestReport | None:
    """Takes a feed (URL or file) into the pool; None if its server says that nothing has changed.

    A URL that could be read is followed from then on, and due at `due_at` (`now` by default), or later, for as long as
    its server calls it fresh. Validators are kept only once every batch is committed: a failed run is repeated in full.
    allowed, transport: as in `fetch`.
    Raises SourceError.
    """
    if "://" in location:
        checked_url(location)
    kept: list[Validators] = []
    refreshed = refresh(
        pool, location, feeds.last(location), kept.append, now=now, progress=progress, allowed=allowed,
        transport=transport, section=next((one.section for one in feeds.all() if one.url == location), None),
    )  # fmt: skip
    due_at = max(due_at or now, now + min(timedelta(seconds=refreshed.fresh_sec), WAIT_LIMIT))
    if kept and "://" in location:
        feeds.keep(location, kept[0], now, due_at)
    elif "://" in location:
        feeds.answered(location, at=now, due_at=due_at)
    return refreshed.report


def refresh(
    pool: NewsPool,
    location: str,
    known: Validators,
    keep: Callable[[Validators], None],
    *,
    now: datetime,
    section: str | None = None,
    progress: Progress | None = None,
    allowed: Sequence[IpNetwork] = (),
    transport: httpx.BaseTransport | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Refreshed:
    """One conditional GET, and what is new into the pool; `keep` hears the validators once all of it is committed.

    Raises SourceError.
    """
    document = fetch(location, known, allowed=allowed, transport=transport, cancelled=cancelled)
    if isinstance(document, NotModified):
        return Refreshed(None, document.fresh_sec)
    rows = read_feed(document, now=now, section=section)
    report = ingest(pool, rows, source=location[:SOURCE_CHARS], progress=progress, oldest=pool.horizon(now))
    keep(document.validators)
    return Refreshed(report, document.fresh_sec)
