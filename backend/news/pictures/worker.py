"""Fetches and lists publishers' pictures in the background, on one process at a time.

Nothing here depends on what any reader opens: which pictures are fetched follows from the pool, the default list and
what the operator allows. No request of a device waits for a picture or causes a download. Listing has its own thread
and lock, so withdrawing pictures that may no longer be shown never waits for a download.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
from sqlalchemy import Engine

from backend.db.advisory_lock import advisory_lock
from backend.db.tables import FAILED, MADE
from backend.news.pictures.converter import AIM_BYTES, WHOLE_AIM_BYTES
from backend.news.pictures.fetcher import WORK, PictureFetcher
from backend.news.pictures.shards import PictureShards
from backend.news.pictures.store import PicturedStory, PictureRepository
from backend.news.public_addresses import IpNetwork

FETCHING = "pictures-fetching"
LOOK_EVERY_SEC, BUSY_AGAIN_SEC, STOP_WITHIN_SEC = 15.0, 1.0, 45.0
"""Intervals in seconds. BUSY_AGAIN_SEC: the wait if another process or thread held the lock."""
FIRST_LIST_AFTER = timedelta(minutes=2)
"""The first list waits this long for more pictures once there is one."""
SWEEP_EVERY, SWEPT_AFTER_SEC = timedelta(hours=1), 3_600.0
"""Shards of the previous list can be downloaded for another hour, except after a withdrawal."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PictureRules:
    """Limits of pictures.

    served_bytes: total size of the pictures that a device downloads; 0: none are fetched. every: minimum interval
    between changes of the list, except withdrawals. lifetime: of the pool's articles. allowed: as in `download`.
    """

    served_bytes: int
    every: timedelta
    lifetime: timedelta
    allowed: Sequence[IpNetwork] = ()


@dataclass(frozen=True)
class _Plan:
    """served: pictures to list. due: pictures to fetch. left: pictures beyond the limit."""

    served: list[PicturedStory]
    due: list[PicturedStory]
    left: list[PicturedStory]


class PictureWorker:
    """Fetches and lists pictures in background threads.

    listed: returns the ids of the default list, in its order; its pictures come before all others.
    """

    def __init__(
        self,
        engine: Engine,
        shards: PictureShards,
        rules: PictureRules,
        listed: Callable[[], Sequence[str]],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.store, self.shards = PictureRepository(engine, clock), shards
        self._engine, self._rules, self._listed, self._clock = engine, rules, listed, clock
        self._stopping, self._threads = threading.Event(), list[threading.Thread]()
        self._to_list, self._to_fetch = threading.Event(), threading.Event()
        self._fetcher = PictureFetcher(
            engine, self.store, shards, self._stopping, allowed=rules.allowed, clock=clock, transport=transport
        )
        self._first_at: datetime | None = None
        self._swept_at: datetime | None = None
        self._withdrawn = False

    def step(self) -> bool:
        """List what may be shown, fetch some of what is due, list that, and return whether more is due."""
        self.list_made()
        more = self.fetch_due()
        self.list_made()
        return more

    def list_made(self) -> bool:
        """Withdraw what may no longer be shown and list what is available; False if another process has the lock."""
        with advisory_lock(self._engine, WORK) as mine:
            if mine:
                self._withdrawn |= self.store.withdraw() > 0
                plan = self._plan()
                self.store.leave(plan.left)
                self._publish(plan, at_once=self._withdrawn)
                self._withdrawn = False  # only now, so that a storage that failed is tried again
        return mine

    def fetch_due(self) -> bool:
        """Fetch some of what is due; return whether more is due, False also if another process has the lock."""
        with advisory_lock(self._engine, FETCHING) as mine:
            if not mine or not self._fetcher.fetch(self._plan().due):
                return False
            return bool(self._plan().due) and not self._stopping.is_set()

    def wake(self) -> None:
        """Run now instead of at the next interval."""
        self._to_list.set()
        self._to_fetch.set()

    def start(self) -> None:
        """Start the background threads."""
        for work, woken in ((self._listing, self._to_list), (self._fetching, self._to_fetch)):
            self._threads.append(threading.Thread(target=self._run, args=(work, woken), name="pictures", daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        """Cancel downloads and stop. What was cancelled stays due."""
        self._stopping.set()
        self.wake()
        until = time.monotonic() + STOP_WITHIN_SEC
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self, work: Callable[[], float], woken: threading.Event) -> None:
        while not self._stopping.is_set():
            woken.clear()
            wait_sec = LOOK_EVERY_SEC
            try:
                wait_sec = work()
            except Exception:
                # A locked database, a full disk or an unavailable storage may recover: the next run continues.
                _log.exception("the pictures of feeds could not be updated")
            if not self._stopping.is_set():
                woken.wait(wait_sec)

    def _listing(self) -> float:
        return LOOK_EVERY_SEC if self.list_made() else BUSY_AGAIN_SEC

    def _fetching(self) -> float:
        more = self.fetch_due()
        self._to_list.set()
        return 0.0 if more else LOOK_EVERY_SEC

    def _plan(self) -> _Plan:
        now = self._clock()
        stories = self.store.stories(now - self._rules.lifetime)
        rank = {news_id: place for place, news_id in enumerate(self._listed())}
        # A stable sort: the others stay newest first. Card pictures come before those in texts.
        stories.sort(key=lambda story: (story.of_text > 0, rank.get(story.id, len(rank))))
        plan, limit = _Plan([], [], []), self._rules.served_bytes
        here = hoped = 0  # bytes so far: of available pictures, and including expected ones
        for story in stories:
            size = story.size_bytes or 0
            if story.state == MADE:
                # Ignores pending ones: a served picture isn't removed for one that may never arrive.
                if here + size <= limit:
                    plan.served.append(story)
                    if story.renewed and self._fetcher.waits(story, now):
                        plan.due.append(story)
                elif here > 2 * limit:
                    plan.left.append(story)
                here += size
                hoped += size
            elif story.state in (None, FAILED) and self._fetcher.waits(story, now):
                aim = WHOLE_AIM_BYTES if story.of_text else AIM_BYTES
                if hoped + aim <= limit:
                    plan.due.append(story)
                hoped += aim
        return plan

    def _publish(self, plan: _Plan, *, at_once: bool) -> None:
        now, listed_at = self._clock(), self.shards.listed_at()
        if self._first_at is None and plan.served:
            self._first_at = now
        if listed_at is None:
            ready = not plan.due or (self._first_at is not None and _past(self._first_at, FIRST_LIST_AFTER, now))
        else:
            ready = _past(listed_at, self._rules.every, now)
        if at_once or ready:
            self.store.forget(self.shards.publish(plan.served))
        if at_once or self._swept_at is None or _past(self._swept_at, SWEEP_EVERY, now):
            self.shards.sweep(self.store.kept(), 0.0 if at_once else SWEPT_AFTER_SEC)
            self._swept_at = now


def _past(since: datetime, every: timedelta, now: datetime) -> bool:
    """Whether the interval is over, or `since` is in the future because the clock was set back."""
    return not timedelta() <= now - since < every
