"""Prepares the first release of a reader's own server while it serves, as soon as there are stories.

Pages show the newest stories until then. The work is done by `backend.setup.first_start_process`.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import Engine

from backend.errors import OwnfeedError
from backend.news.followed_feeds import FollowedFeed, FollowedFeeds
from backend.news.pool import NewsPool
from backend.releases.between_rounds import is_published
from backend.server.progress import Advance
from backend.settings import BackendSettings
from backend.setup.first_start_process import COMMAND, FirstStartProcess
from protocol.own_feeds import Preparation

STORIES_WAIT_SEC = 25.0
"""How long the first release waits for the feeds that have not answered once others have."""
LOOK_SEC = 0.25
AGAIN_SEC = 60.0
STOP_WITHIN_SEC = 15.0

_log = logging.getLogger(__name__)


class FirstRelease:
    """Makes the first release in a thread, and reports its progress.

    What needs no stories is made at once. The rest waits until every feed has answered or failed, or until
    STORIES_WAIT_SEC after the first stories. A failed try is repeated. command: tests pass their own.
    """

    def __init__(self, settings: BackendSettings, engine: Engine, command: Sequence[str] = COMMAND) -> None:
        self._settings, self._engine, self._command = settings, engine, command
        self._pool, self._feeds = NewsPool(engine), FollowedFeeds(engine)
        self._stopping = threading.Event()
        self._process: FirstStartProcess | None = None
        self._thread: threading.Thread | None = None
        self._now: Preparation | None = Preparation()

    def status(self) -> Preparation | None:
        """What is being prepared; None once there is a release."""
        return self._now

    def start(self, then: Callable[[], None]) -> None:
        """Begin, and call `then` once there is a release."""
        self._thread = threading.Thread(target=self._run, args=(then,), name="first-release", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop; what was prepared stays, and the next start continues from there."""
        self._stopping.set()
        if self._process is not None:
            self._process.terminate()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_SEC)

    @contextmanager
    def step(self, title: str) -> Iterator[Advance]:
        """As in `backend.server.progress.Steps`."""
        self._now = Preparation(step=title)

        def advance(done: int, total: int | None) -> None:
            self._now = Preparation(step=title, done=done, total=total)

        yield advance

    def _run(self, then: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                if not is_published(self._engine):
                    self._prepare()
            except Exception as failed:
                if self._stopping.is_set():
                    return
                if not isinstance(failed, OwnfeedError | OSError):
                    _log.exception("the first release could not be prepared")
                self._now = Preparation(trouble=str(failed) or type(failed).__name__)
                self._stopping.wait(AGAIN_SEC)
            else:
                self._now = None
                then()
                return

    def _prepare(self) -> None:
        with FirstStartProcess(self._settings, waits=True, command=self._command) as process:
            self._process = process
            if self._stopping.is_set():  # since before there was a process to end
                process.terminate()
            threading.Thread(target=self._wait_for_stories, args=(process,), name="first-stories", daemon=True).start()
            process.follow(self)

    def _wait_for_stories(self, process: FirstStartProcess) -> None:
        first_at: float | None = None
        while not self._stopping.is_set() and process.is_running():
            feeds = self._feeds.all()
            if any(feed.fetched_at is not None for feed in feeds) and self._pool.newest(datetime.now(UTC), 1):
                first_at = first_at or time.monotonic()
                if not any(map(_waits, feeds)) or time.monotonic() - first_at > STORIES_WAIT_SEC:
                    process.news_are_here()
                    return
            self._stopping.wait(LOOK_SEC)


def _waits(feed: FollowedFeed) -> bool:
    """Whether it has neither answered nor failed yet."""
    return feed.fetched_at is None and not feed.failures and not feed.paused
