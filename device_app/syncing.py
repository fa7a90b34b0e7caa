"""One background step of keeping up: release, vectors, common list, pool, popularity, texts; then what is old goes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from device_app.errors import BackendUnreachable
from device_app.feed.bodies import Bodies
from device_app.feed.serving import Serving
from device_app.settings import PerformanceSettings
from device_app.shelves import Shelves
from device_app.sync.front import FrontSync
from device_app.sync.pool_codes import PoolSync
from device_app.sync.popularity import PopularitySync
from device_app.sync.releases import ReleaseSync
from device_app.sync.vectors import VectorSync
from device_app.uplink.vectors import read_vectors
from device_app.wire.recall import RecallAnswer

PRUNE_EVERY = timedelta(hours=6)
IMPRESSIONS_KEPT = timedelta(days=60)
INDEXED_A_STEP = 1_000
"""Most news made searchable in one step; a search does the rest itself."""


class Syncing:
    """Nothing it asks for depends on what the reader does."""

    def __init__(
        self,
        releases: ReleaseSync,
        vectors: VectorSync,
        front: FrontSync,
        pool: PoolSync,
        popularity: PopularitySync,
        shelves: Shelves,
        bodies: Bodies,
        serving: Serving,
        settings: PerformanceSettings,
        clock: Callable[[], datetime],
    ) -> None:
        self._releases = releases
        self._vectors = vectors
        self._front = front
        self._pool = pool
        self._popularity = popularity
        self._shelves = shelves
        self._bodies = bodies
        self._serving = serving
        self._settings = settings
        self._clock = clock
        self._lock = Lock()
        self._pruned_at: datetime | None = None
        self._texts_checked = False
        self.online: bool | None = None
        self.last_at: datetime | None = None

    def step(self) -> bool:
        """One look at everything; True if another release is in use now.

        Raises BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused; what was there before stays.
        """
        with self._lock:
            try:
                swapped = self._releases.refresh()
                try:
                    # First the vectors: with a new encoder the reader's clicks would else be strangers to the feed.
                    self._vectors.refresh()
                finally:
                    if swapped:
                        self._serving.swap()
                self._take_front(self._front.refresh())
                self._pool.refresh()
                self._popularity.refresh()
            except BackendUnreachable:
                self.online = False
                raise
            self.online = True
            self.last_at = self._clock()
            self._prune(self.last_at)
            self._shelves.search_index.catch_up(INDEXED_A_STEP)
            return swapped

    def _take_front(self, answer: RecallAnswer | None) -> None:
        """Queue the texts of the whole list when it is new, and once a start when some are missing."""
        models = self._serving.models()
        if answer is not None:
            self._bodies.want(answer, read_vectors(answer, models.dimensions))
        elif not self._texts_checked:
            front = self._serving.desk.front.candidates(models.encoder, models.dimensions)
            if self._shelves.news.without_body([card.id for card in front.cards]):
                kept = RecallAnswer(release=models.release, encoder=models.encoder, candidates=front.cards, vectors=b"")
                self._bodies.want(kept, front.vectors)
        self._texts_checked = True

    def _prune(self, now: datetime) -> None:
        if self._pruned_at is not None and now - self._pruned_at < PRUNE_EVERY:
            return
        self._pruned_at = now
        front = self._shelves.front_page.current()
        last = self._serving.last()
        keep = {*(front.news_ids if front else ()), *(item.card.id for item in (last.items if last else ()))}
        self._shelves.news.prune(now - timedelta(days=self._settings.shelf_days), keep)
        self._shelves.search_index.tidy()
        self._shelves.impressions.prune(now - IMPRESSIONS_KEPT)
