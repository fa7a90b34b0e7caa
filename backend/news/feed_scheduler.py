"""Refreshes the followed feeds automatically, in background threads, on one process of the server at a time.

Each host gets one request at a time, with a pause after it, and longer pauses if it requires them
(`backend.news.polite_hosts`). A feed is polled about as often as it publishes (`backend.news.feed_refresh`).
"""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from secrets import SystemRandom

import httpx
from sqlalchemy import Engine

from backend.db.advisory_lock import advisory_lock
from backend.news.discovery import DiscoveredFeed, discover_or_take
from backend.news.errors import FeedRefused, SourceError, SourceUnreachable
from backend.news.feed_addresses import checked_url, host_of
from backend.news.feed_refresh import FullTexts, pace, take_in
from backend.news.followed_feeds import WAIT_LIMIT, FollowedFeed, FollowedFeeds
from backend.news.polite_hosts import PoliteHosts
from backend.news.pool import NewsPool
from backend.news.public_addresses import IpNetwork
from backend.news.sources.download import Document, NotModified, fetch

WORK = "refresh-feeds"
FEEDS_AT_ONCE = 4
PAGE_LOOK_SEC, PAGE_WAIT_SEC = 0.5, 30.0
"""How often a fetch of a story's page checks whether its host is free, and the longest pause that it waits for."""
LOOK_EVERY_SEC = 15.0
"""How often changes by other processes are noticed, and the longest wait for a host within a step."""
JITTER = 0.1
"""Each wait is extended at random by up to this share, so that feeds added together don't stay synchronised."""
STOP_WITHIN_SEC = 30.0
PAUSE_SEC = 1.0
RATE_LIMITED_AT_ONCE = 3
"""After this many consecutive 429 answers a feed waits as after any other error, not just as long as its host asks."""
RATE_LIMITED, GONE = 429, 410
RESTS = frozenset({RATE_LIMITED, 503})

_log = logging.getLogger(__name__)


def wait(every: timedelta, chance: float, *, failures: int = 0, asked_sec: float = 0.0) -> timedelta:
    """How long until a feed is requested again.

    every: the interval without errors. failures: consecutive failures including the last one; each doubles the
    interval, up to WAIT_LIMIT. asked_sec: the wait that the feed's server requested. chance: in [0, 1), the share of
    the jitter to add.
    """
    # The exponent is bounded, since 2.0 ** 1024 overflows a float.
    doubled_sec = every.total_seconds() * 2.0 ** min(max(failures - 1, 0), 40)
    limit_sec = max(WAIT_LIMIT, every).total_seconds()
    return timedelta(seconds=max(min(doubled_sec, limit_sec), min(asked_sec, limit_sec)) * (1 + JITTER * chance))


def longest_wait(every: timedelta) -> timedelta:
    """The upper bound of `wait`."""
    return wait(every, 1.0, asked_sec=WAIT_LIMIT.total_seconds())


def utc_now() -> datetime:
    """The clock of a running server."""
    return datetime.now(UTC)


class FeedScheduler:
    """Requests each followed feed when it is due, and ingests its articles.

    every: the shortest interval; zero: feeds are never refreshed automatically (`is_on`). seldom: the longest, by
    default the same; between these limits a feed is requested as often as it publishes. pause_sec: between two requests
    to a host. allowed, transport: as in `backend.news.sources.download.fetch`. chance: draws from [0, 1) for the
    jitter. sleep: waits for a number of seconds, by default until `stop` at most.
    """

    def __init__(
        self,
        engine: Engine,
        pool: NewsPool,
        *,
        every: timedelta,
        seldom: timedelta | None = None,
        pause_sec: float = PAUSE_SEC,
        allowed: Sequence[IpNetwork] = (),
        clock: Callable[[], datetime] = utc_now,
        chance: Callable[[], float] = SystemRandom().random,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.followed, self.every, self.is_on = FollowedFeeds(engine), every, every > timedelta(0)
        self.seldom = max(every, seldom or every)
        self._engine, self._pool, self._allowed, self._transport = engine, pool, tuple(allowed), transport
        self._clock, self._chance = clock, chance
        self._hosts = PoliteHosts(engine, pause_sec)
        self._stopping, self._woken = threading.Event(), threading.Event()
        self._sleep = sleep or self._stopping.wait
        self._changed = threading.Condition()  # guards the hosts and the running feeds; notified when either changes
        self._running: set[str] = set()
        self._thread: threading.Thread | None = None

    def step(self) -> int:
        """Refresh all due feeds, FEEDS_AT_ONCE at a time and one of a host, and return how many were due.

        Feeds whose host rests for longer than LOOK_EVERY_SEC stay due. Returns 0 if another process holds the lock.
        """
        with advisory_lock(self._engine, WORK) as mine:
            if not mine:
                return 0
            now = self._clock()
            if put_off := self.followed.put_right(now, longest_wait(self.seldom)):
                _log.warning("%d feeds were postponed by a clock ahead of this one; they are read now", put_off)
            self.followed.forget_removed(now)
            with self._changed:
                self._hosts.load(now)
            return self._read_due()

    def wake(self) -> None:
        """Check for due feeds now instead of at the next interval."""
        self._woken.set()
        with self._changed:
            self._changed.notify_all()

    def find(self, pasted: str) -> list[DiscoveredFeed]:
        """The feeds behind what a person pasted, for pages (`backend.news.discovery.discover_or_take`).

        Raises SourceError.
        """

        def get(url: str) -> Document:
            document = fetch(url, allowed=self._allowed, transport=self._transport, cancelled=self._stopping.is_set)
            assert isinstance(document, Document)  # only a conditional GET returns anything else
            return document

        return discover_or_take(pasted, get)

    def start(self) -> None:
        """Start the background threads, unless the interval is zero."""
        if self.is_on:
            self._thread = threading.Thread(target=self._run, name="feed-scheduler", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Cancel downloads, wait for writes in progress, and stop. The cancelled feeds stay due."""
        self._stopping.set()
        self.wake()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_SEC)
            if self._thread.is_alive():
                _log.error("the scheduler of feeds did not stop within %g s", STOP_WITHIN_SEC)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                self.step()
                free_in = self._free_in()
            except Exception:
                # A locked database or a full disk may recover: what was due stays due and is retried.
                _log.exception("the followed feeds could not be checked")
                free_in = LOOK_EVERY_SEC
            if not self._stopping.is_set():
                self._woken.wait(min(max(free_in, 0.1), LOOK_EVERY_SEC))

    def _free_in(self) -> float:
        """Return the seconds until the next feed can be requested."""
        now, next_due_at = self._clock(), self.followed.next_due_at()
        with self._changed:
            waits = [self._hosts.free_in(host_of(feed.url), now) or 0.0 for feed in self.followed.due(now)]
        if next_due_at is not None and not waits:
            waits = [(next_due_at - now).total_seconds()]
        return min(waits, default=LOOK_EVERY_SEC)

    def _read_due(self) -> int:
        """Start a thread for each due feed when its host is free; return how many. Leave feeds with a long wait."""
        started = set[str]()
        listed_at, due = self._clock(), self.followed.due(self._clock())
        while not self._stopping.is_set():
            now = self._clock()
            if self._woken.is_set() or (now - listed_at).total_seconds() >= LOOK_EVERY_SEC:
                self._woken.clear()
                listed_at, due = now, self.followed.due(now)
            due = [feed for feed in due if feed.key not in started]
            with self._changed:
                waits = {feed.key: self._hosts.free_in(host_of(feed.url), now) for feed in due}
                ready = next((feed for feed in due if (free_in := waits[feed.key]) is not None and free_in <= 0), None)
                soonest = min((free_in for free_in in waits.values() if free_in is not None), default=LOOK_EVERY_SEC)
                if ready is not None and len(self._running) < FEEDS_AT_ONCE:
                    started.add(ready.key)
                    self._begin(ready, now)
                    continue
                if self._running:
                    self._changed.wait(LOOK_EVERY_SEC if ready else max(min(soonest, LOOK_EVERY_SEC), 0.01))
                    continue
            if not due or soonest > LOOK_EVERY_SEC:
                break
            self._sleep(soonest)
        with self._changed:
            while self._running:
                self._changed.wait()
        return len(started)

    def _begin(self, feed: FollowedFeed, now: datetime) -> None:
        self._running.add(feed.key)
        self._hosts.begin(host_of(feed.url), now)
        # A daemon thread: a process that exits doesn't wait for a feed's server. Only whole batches are then in the
        # pool.
        threading.Thread(target=self._work, args=(feed,), name="feed-reader", daemon=True).start()

    def _work(self, feed: FollowedFeed) -> None:
        try:
            self._refresh(feed)
        except Exception:
            # Not even the failure could be recorded; the feed stays due, and the other feeds continue.
            _log.exception("the result of reading a feed could not be recorded")
        finally:
            with self._changed:
                self._running.discard(feed.key)
                self._changed.notify_all()

    def _refresh(self, feed: FollowedFeed) -> None:
        try:
            self._read(feed)
        except SourceError as refused:
            error, answer = refused.detail, refused
        except Exception as broken:
            _log.exception("a feed could not be refreshed")
            error, answer = f"Ownfeed failed to read it ({type(broken).__name__}); see the server's log.", None
        else:
            return
        if self._stopping.is_set():
            return
        failures, now = feed.failures + 1, self._clock()
        asked_sec, status = (answer.wait_sec, answer.http_status) if isinstance(answer, SourceUnreachable) else (0.0, 0)
        pause = wait(self.every, self._chance(), failures=failures, asked_sec=asked_sec)
        if status == RATE_LIMITED and failures <= RATE_LIMITED_AT_ONCE:
            pause = timedelta(seconds=asked_sec)
        if status == GONE:
            _log.warning("the feed %s is gone permanently: its server answered 410", feed.url)
        self.followed.failed(feed.key, error, failures=failures, due_at=now + pause, ended=status == GONE)

    def _read(self, feed: FollowedFeed) -> None:
        """Request the feed and ingest the answer."""
        if feed.unverified:
            _log.warning("the certificate of %s is not checked, as set for this feed", host_of(feed.url))
        found = self._fetched(feed)
        now = self._clock()
        last = None if feed.pace_sec is None else timedelta(seconds=feed.pace_sec)
        if isinstance(found, NotModified):
            often = pace(None, now, last=last)
            self._answered(feed, now, often, found)
            return
        taken = take_in(
            self._pool, found, key=feed.key, now=now, section=feed.section,
            named=lambda title: self.followed.named(feed.key, feed.url, title),
            full_texts=FullTexts(self.followed, feed.key, partial(self._page, feed)) if feed.full_text else None,
        )  # fmt: skip
        often = pace(taken.published, now, last=last, brought=taken.report.changed, hint=taken.hint)
        self._answered(feed, now, often, found, {"name": taken.name, "site": taken.site or feed.site})

    def _page(self, feed: FollowedFeed, url: str) -> bytes:
        """A story's page, requested once its host is free. Raises SourceError."""
        host = host_of(url)
        while not self._stopping.is_set():
            with self._changed:
                free_in = self._hosts.free_in(host, self._clock())
                if free_in is not None and free_in <= 0:
                    self._hosts.begin(host, self._clock())
                    break
            if free_in is not None and free_in > PAGE_WAIT_SEC:
                raise SourceUnreachable(url, "its server asked for fewer requests", free_in)
            self._stopping.wait(min(free_in or PAGE_LOOK_SEC, PAGE_LOOK_SEC))
        try:
            found = fetch(
                url, allowed=self._allowed, transport=self._transport, cancelled=self._stopping.is_set, proxy=feed.proxy
            )
        except SourceUnreachable as refused:
            if refused.http_status in RESTS or refused.wait_sec:
                paces = refused.http_status == RATE_LIMITED
                with self._changed:
                    self._hosts.refused(host_of(refused.asked), self._clock(), refused.wait_sec, paces=paces)
            raise
        finally:
            with self._changed:
                self._hosts.end(host, self._clock())
                self._changed.notify_all()
        assert isinstance(found, Document)  # only a conditional GET returns anything else
        return found.data

    def _fetched(self, feed: FollowedFeed) -> Document | NotModified:
        """Return the answer of the feed's server, after which the host is free again. Raises SourceError with
        the wait.
        """
        host = host_of(feed.url)
        try:
            found = fetch(
                feed.url, self.followed.last(feed.key), allowed=self._allowed, transport=self._transport,
                cancelled=self._stopping.is_set, unverified=feed.unverified, proxy=feed.proxy,
            )  # fmt: skip
            with self._changed:
                self._hosts.answered(host, self._clock())
            return found
        except SourceUnreachable as refused:
            if refused.http_status in RESTS or refused.wait_sec:
                by, paces = host_of(refused.asked), refused.http_status == RATE_LIMITED
                with self._changed:
                    refused.wait_sec = self._hosts.refused(by, self._clock(), refused.wait_sec, paces=paces)
            raise
        finally:
            with self._changed:
                self._hosts.end(host, self._clock())
                self._changed.notify_all()

    def _answered(
        self,
        feed: FollowedFeed,
        now: datetime,
        often: timedelta,
        found: Document | NotModified,
        says: dict[str, str] | None = None,
    ) -> None:
        every = min(max(often, self.every), self.seldom)
        due_at = now + wait(every, self._chance(), asked_sec=found.fresh_sec)
        moved_to = found.moved_to
        try:
            checked_url(moved_to or feed.url)
        except FeedRefused:  # the new address isn't allowed: keep the old one
            moved_to = ""
        validators = None if isinstance(found, NotModified) else found.validators
        if self.followed.answered(
            feed.key, at=now, due_at=due_at, validators=validators, pace=often, moved_to=moved_to, says=says
        ):
            _log.info("the feed %s has moved to %s permanently", feed.url, moved_to)
