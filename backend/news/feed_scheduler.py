"""Refreshes the followed feeds by itself, in threads of its own, on one process of the server at a time."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from secrets import SystemRandom

import httpx
from sqlalchemy import Engine

from backend.db.advisory_lock import advisory_lock
from backend.news.errors import SourceError, SourceUnreachable
from backend.news.followed_feeds import WAIT_LIMIT, FollowedFeed, FollowedFeeds, refresh
from backend.news.pool import NewsPool
from backend.news.sources.download import Validators
from backend.public_addresses import IpNetwork

WORK = "refresh-feeds"
FEEDS_AT_ONCE = 4
LOOK_EVERY_SEC = 15.0
JITTER = 0.1
"""A wait is up to this share longer, so that feeds added together are not asked together for good."""
STOP_WITHIN_SEC = 30.0

_log = logging.getLogger(__name__)


def wait(every: timedelta, chance: float, *, failures: int = 0, asked_sec: float = 0.0) -> timedelta:
    """How long until a feed is asked again.

    every: the interval where all is well. failures: in a row, the last one included; each doubles the interval, up to
    WAIT_LIMIT. asked_sec: what its server asked for. chance: in [0, 1), how much of the jitter is added.
    """
    # The exponent is bounded, since 2.0 ** 1024 is no float.
    doubled_sec = every.total_seconds() * 2.0 ** min(max(failures - 1, 0), 40)
    limit_sec = max(WAIT_LIMIT, every).total_seconds()
    return timedelta(seconds=max(min(doubled_sec, limit_sec), min(asked_sec, limit_sec)) * (1 + JITTER * chance))


def longest_wait(every: timedelta) -> timedelta:
    """What no `wait` is longer than."""
    return wait(every, 1.0, asked_sec=WAIT_LIMIT.total_seconds())


def utc_now() -> datetime:
    """The clock of a running server."""
    return datetime.now(UTC)


class FeedScheduler:
    """Asks for each followed feed when it is due; what it brings is ingested and becomes searchable as any news do.

    every: the interval; zero: feeds are never refreshed by themselves (`is_on`).
    allowed, transport: as in `backend.news.sources.download.fetch`. chance: draws from [0, 1) for the jitter.
    """

    def __init__(
        self,
        engine: Engine,
        pool: NewsPool,
        *,
        every: timedelta,
        allowed: Sequence[IpNetwork] = (),
        clock: Callable[[], datetime] = utc_now,
        chance: Callable[[], float] = SystemRandom().random,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.followed, self.every, self.is_on = FollowedFeeds(engine), every, every > timedelta(0)
        self._engine, self._pool, self._allowed, self._transport = engine, pool, tuple(allowed), transport
        self._clock, self._chance = clock, chance
        self._stopping, self._woken = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def step(self) -> int:
        """Refresh what is due, FEEDS_AT_ONCE at a time, and return how many feeds that were.

        0 too where another process is at it.
        """
        with advisory_lock(self._engine, WORK) as mine:
            if not mine:
                return 0
            now = self._clock()
            if put_off := self.followed.put_right(now, longest_wait(self.every)):
                _log.warning("%d feeds were put off by a clock that was ahead of this one; they are read now", put_off)
            due = self.followed.due(now)
            waiting: queue.SimpleQueue[FollowedFeed] = queue.SimpleQueue()
            for feed in due:
                waiting.put(feed)
            # Daemons: a process that ends waits for no feed's server. Whole batches only are in the pool then.
            workers = [
                threading.Thread(target=self._work, args=(waiting,), name="feed-reader", daemon=True)
                for _ in range(min(FEEDS_AT_ONCE, len(due)))
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        return len(due)

    def wake(self) -> None:
        """Look for due feeds now rather than at the next turn."""
        self._woken.set()

    def start(self) -> None:
        """Begin to work in the background, unless the interval is zero."""
        if self.is_on:
            self._thread = threading.Thread(target=self._run, name="feed-scheduler", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Give up downloads under way, let what is being stored end, and stop. The feeds given up stay due."""
        self._stopping.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_SEC)
            if self._thread.is_alive():
                _log.error("the scheduler of feeds did not stop within %g s", STOP_WITHIN_SEC)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                self.step()
            except Exception:
                # A locked database or a full disk may pass: what was due stays so, and the next turn retries.
                _log.exception("the followed feeds could not be looked at")
            if not self._stopping.is_set():
                self._woken.wait(LOOK_EVERY_SEC)

    def _work(self, waiting: queue.SimpleQueue[FollowedFeed]) -> None:
        while not self._stopping.is_set():
            try:
                feed = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._refresh(feed)
            except Exception:
                # Not even the failure could be noted; the feed stays due, and the other feeds go on.
                _log.exception("what became of a feed could not be noted")

    def _refresh(self, feed: FollowedFeed) -> None:
        asked_sec = 0.0
        kept: list[Validators] = []
        try:
            found = refresh(
                self._pool, feed.url, self.followed.last(feed.url), kept.append, now=self._clock(),
                allowed=self._allowed, transport=self._transport, section=feed.section, cancelled=self._stopping.is_set,
            )  # fmt: skip
        except SourceError as refused:
            error = refused.detail
            asked_sec = refused.wait_sec if isinstance(refused, SourceUnreachable) else 0.0
        except Exception as broken:
            _log.exception("a feed could not be refreshed")
            error = f"Ownfeed failed on it ({type(broken).__name__}); the server's log says more."
        else:
            now = self._clock()
            due_at = now + wait(self.every, self._chance(), asked_sec=found.fresh_sec)
            self.followed.answered(feed.url, at=now, due_at=due_at, validators=kept[0] if kept else None)
            return
        if self._stopping.is_set():
            return
        failures = feed.failures + 1
        pause = wait(self.every, self._chance(), failures=failures, asked_sec=asked_sec)
        self.followed.failed(feed.url, error, failures=failures, due_at=self._clock() + pause)
