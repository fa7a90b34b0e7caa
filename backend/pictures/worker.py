"""Keeps publishers' pictures in the background, on one process at a time: has them fetched, and lists them for devices.

Nothing here hangs on what anybody reads: which pictures are asked for follows from the pool, the default list and what
the operator allows. No request of a device waits for a picture, or causes one to be fetched. Listing, and with it the
withdrawal of what may no longer be shown, waits for no download: each has its own thread and its own lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
from sqlalchemy import Engine

from backend.db.advisory_lock import advisory_lock
from backend.db.tables_pictures import FAILED, MADE
from backend.pictures.converter import AIM_BYTES
from backend.pictures.fetcher import WORK, PictureFetcher
from backend.pictures.shards import PictureShards
from backend.pictures.store import PicturedStory, PictureRepository
from backend.public_addresses import IpNetwork

FETCHING = "pictures-fetching"
LOOK_EVERY_SEC, BUSY_AGAIN_SEC, STOP_WITHIN_SEC = 15.0, 1.0, 45.0
"""BUSY_AGAIN_SEC: where another process, or a picture that has just come, had the turn."""
FIRST_LIST_AFTER = timedelta(minutes=2)
"""The first list is of all that can be had, but isn't waited for any longer once there is a picture."""
SWEEP_EVERY, SWEPT_AFTER_SEC = timedelta(hours=1), 3_600.0
"""Devices that have the list before may still take its shards for an hour, but where a picture was withdrawn."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PictureRules:
    """served_bytes: of all pictures that devices take together; 0: none are fetched. every: the list changes at most
    so often, but for withdrawals. lifetime: of the pool's news. allowed: networks as of `download`."""

    served_bytes: int
    every: timedelta
    lifetime: timedelta
    allowed: Sequence[IpNetwork] = ()


@dataclass(frozen=True)
class _Plan:
    """served: to be listed. due: to be fetched. left: beyond what is kept."""

    served: list[PicturedStory]
    due: list[PicturedStory]
    left: list[PicturedStory]


class PictureWorker:
    """listed: the ids of the default list, in its order; its pictures come before all others."""

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
        """List what may be shown, fetch some of what is due, and list that; whether more is due."""
        self.list_made()
        more = self.fetch_due()
        self.list_made()
        return more

    def list_made(self) -> bool:
        """Withdraw what may no longer be shown, and list what is here; False where another process is at it."""
        with advisory_lock(self._engine, WORK) as mine:
            if mine:
                self._withdrawn |= self.store.withdraw() > 0
                plan = self._plan()
                self.store.leave(plan.left)
                self._publish(plan, at_once=self._withdrawn)
                self._withdrawn = False  # not before: a storage that fails now may answer at the next look
        return mine

    def fetch_due(self) -> bool:
        """Fetch some of what is due; whether more is. False too where another process is at it."""
        with advisory_lock(self._engine, FETCHING) as mine:
            if not mine or not self._fetcher.fetch(self._plan().due):
                return False
            return bool(self._plan().due) and not self._stopping.is_set()

    def wake(self) -> None:
        """Look now rather than at the next turn."""
        self._to_list.set()
        self._to_fetch.set()

    def start(self) -> None:
        """Begin to work in the background."""
        for turn, woken in ((self._listing, self._to_list), (self._fetching, self._to_fetch)):
            self._threads.append(threading.Thread(target=self._run, args=(turn, woken), name="pictures", daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        """Give up downloads under way and stop. What was given up stays due."""
        self._stopping.set()
        self.wake()
        until = time.monotonic() + STOP_WITHIN_SEC
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self, turn: Callable[[], float], woken: threading.Event) -> None:
        while not self._stopping.is_set():
            woken.clear()
            wait_sec = LOOK_EVERY_SEC
            try:
                wait_sec = turn()
            except Exception:
                # A locked database, a full disk or an absent storage may pass: the next turn goes on from here.
                _log.exception("the pictures of feeds could not be looked at")
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
        stories.sort(key=lambda story: rank.get(story.id, len(rank)))  # stable: the others stay newest first
        plan, limit = _Plan([], [], []), self._rules.served_bytes
        here = hoped = 0  # bytes of those so far: of pictures that are here, and with those that may come
        for story in stories:
            size = story.size_bytes or 0
            if story.state == MADE:
                if here + size <= limit:  # whatever is still to come: what devices have isn't taken away for a hope
                    plan.served.append(story)
                    if story.renewed and self._fetcher.waits(story, now):
                        plan.due.append(story)
                elif here > 2 * limit:
                    plan.left.append(story)
                here += size
                hoped += size
            elif story.state in (None, FAILED) and self._fetcher.waits(story, now):
                if hoped + AIM_BYTES <= limit:
                    plan.due.append(story)
                hoped += AIM_BYTES
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
    """Also where `since` is still to come: the clock was set back."""
    return not timedelta() <= now - since < every
