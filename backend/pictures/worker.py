"""Fetches publishers' pictures in the background, on one process at a time, and lists them for devices.

Nothing here hangs on what anybody reads: which pictures are asked for follows from the pool, the default list and what
the operator allows. No request of a device waits for a picture, or causes one to be fetched.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import httpx
from sqlalchemy import Engine

from backend.db.advisory_lock import advisory_lock
from backend.db.tables_pictures import FAILED, MADE
from backend.pictures.converter import AIM_BYTES, PictureRefused, convert
from backend.pictures.download import PictureMissing, download
from backend.pictures.shards import PictureShards
from backend.pictures.store import PicturedStory, PictureRepository
from backend.public_addresses import IpNetwork
from device_app.wire.pictures import PICTURE_HEIGHT, PICTURE_WIDTH, PictureError, check_picture

WORK = "pictures"
LOOK_EVERY_SEC, STOP_WITHIN_SEC = 15.0, 45.0
HOSTS_AT_ONCE, FETCHED_AT_ONCE = 4, 48
"""One host is asked for one picture after another; so many a look, of so many hosts at a time."""
FETCHING_SEC = 60.0
"""No download begins later in a look, so that what is withdrawn meanwhile soon goes."""
TRIES, FIRST_WAIT = 4, timedelta(minutes=10)
"""A picture that may come yet is tried so often; each wait is four times the one before."""
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
        self._engine, self._rules, self._listed = engine, rules, listed
        self._clock, self._transport = clock, transport
        self._stopping, self._woken = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._swept_at: datetime | None = None
        self._resting: dict[str, datetime] = {}

    def step(self) -> bool:
        """Withdraw what may no longer be shown, fetch some of what is due, and list what is here; whether more is due.

        False too where another process is at it.
        """
        with advisory_lock(self._engine, WORK) as mine:
            if not mine:
                return False
            withdrawn = self.store.withdraw() > 0
            plan = self._plan()
            if withdrawn:  # before anything is waited for
                self._publish(plan, at_once=True)
            batch = plan.due[:FETCHED_AT_ONCE]
            self._fetch(batch)
            withdrawn = self.store.withdraw() > 0  # while it was fetched
            plan = self._plan()
            self.store.leave(plan.left)
            more = bool(plan.due) and not self._stopping.is_set()
            self._publish(plan, at_once=withdrawn)
            return more and bool(batch)

    def wake(self) -> None:
        """Look now rather than at the next turn."""
        self._woken.set()

    def start(self) -> None:
        """Begin to work in the background."""
        self._thread = threading.Thread(target=self._run, name="pictures", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Give up downloads under way and stop. What was given up stays due."""
        self._stopping.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_SEC)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            more = False
            try:
                more = self.step()
            except Exception:
                # A locked database, a full disk or an absent storage may pass: the next turn goes on from here.
                _log.exception("the pictures of feeds could not be looked at")
            if not self._stopping.is_set() and not more:
                self._woken.wait(LOOK_EVERY_SEC)

    def _plan(self) -> _Plan:
        now = self._clock()
        stories = self.store.stories(now - self._rules.lifetime)
        rank = {news_id: place for place, news_id in enumerate(self._listed())}
        stories.sort(key=lambda story: rank.get(story.id, len(rank)))  # stable: the others stay newest first
        plan, used, limit = _Plan([], [], []), 0, self._rules.served_bytes
        for story in stories:
            waits = story.state is None or (story.state == FAILED and (story.due_at is None or story.due_at <= now))
            waits = waits and self._resting.get(host_of(story), now) <= now
            size = story.size_bytes or (AIM_BYTES if waits else 0)
            if story.state == MADE:
                if used + size <= limit:
                    plan.served.append(story)
                elif used > 2 * limit:
                    plan.left.append(story)
            elif waits and used + size <= limit:
                plan.due.append(story)
            used += size
        return plan

    def _publish(self, plan: _Plan, *, at_once: bool) -> None:
        now, listed_at = self._clock(), self.shards.listed_at()
        first = listed_at is None and not plan.due
        if at_once or first or (listed_at is not None and now - listed_at >= self._rules.every):
            self.store.forget(self.shards.publish(plan.served))
        if at_once or self._swept_at is None or now - self._swept_at >= SWEEP_EVERY:
            self._swept_at = now
            self.shards.sweep(self.store.kept(), 0.0 if at_once else SWEPT_AFTER_SEC)

    def _fetch(self, due: Sequence[PicturedStory]) -> None:
        by_host: dict[str, list[PicturedStory]] = {}
        for story in due:
            by_host.setdefault(host_of(story), []).append(story)
        waiting: queue.SimpleQueue[list[PicturedStory]] = queue.SimpleQueue()
        until = time.monotonic() + FETCHING_SEC
        for stories in by_host.values():
            waiting.put(stories)
        # Daemons: a process that ends waits for no picture's server.
        workers = [
            threading.Thread(target=self._work, args=(waiting, until), name="picture-reader", daemon=True)
            for _ in range(min(HOSTS_AT_ONCE, len(by_host)))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, waiting: queue.SimpleQueue[list[PicturedStory]], until: float) -> None:
        while not self._stopping.is_set() and time.monotonic() < until:
            try:
                stories = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                for story in stories:
                    if self._stopping.is_set() or time.monotonic() >= until or not self._take(story):
                        break  # a host that doesn't answer is left alone for a while
            except Exception:
                # Not even the failure could be noted; the pictures stay due, and the other hosts go on.
                _log.exception("what became of a picture could not be noted")

    def _take(self, story: PicturedStory) -> bool:
        """One picture; False where its server shall be left alone for now."""
        cancelled = self._stopping.is_set
        try:
            content = download(story.url, allowed=self._rules.allowed, transport=self._transport, cancelled=cancelled)
            made = check_picture(convert(content, PICTURE_WIDTH, PICTURE_HEIGHT))
        except PictureMissing as missing:
            if self._stopping.is_set():
                return False
            if missing.wait is not None:
                self._resting[host_of(story)] = self._clock() + max(missing.wait, FIRST_WAIT)
            given_up = missing.wait is None or story.attempts + 1 >= TRIES
            pause = max(missing.wait or timedelta(), FIRST_WAIT * 4**story.attempts)
            self.store.failed(story, missing.why, None if given_up else self._clock() + pause)
            return missing.wait is None
        except (PictureRefused, PictureError) as refused:
            self.store.failed(story, str(refused), None)
            return True
        self.store.made(story, self.shards.keep_picture(made), len(made))
        return True


def host_of(story: PicturedStory) -> str:
    """Whose server has the picture."""
    return urlsplit(story.url).netloc
