"""One background step of keeping up: release, default list, pool, popularity; what is old goes. Pictures come after."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable
from device_app.feed.bodies import Bodies
from device_app.feed.serving import Serving
from device_app.settings import PerformanceSettings
from device_app.stores import DeviceStores
from device_app.sync.default_list import DefaultListSync
from device_app.sync.encoder_takeover import EncoderTakeover
from device_app.sync.pictures import PictureSync
from device_app.sync.pool_codes import PoolSync
from device_app.sync.popularity import PopularitySync
from device_app.uplink.answers import read_vectors
from device_app.wire.recall import RecallAnswer

log = logging.getLogger(__name__)

PRUNE_EVERY = timedelta(hours=6)
IMPRESSIONS_KEPT = timedelta(days=60)
INDEXED_A_STEP = 1_000
"""Most news made searchable in one step; a search does the rest itself."""
POOL_INDEXED_A_STEP = 10_000
"""The same of the pool's cards: a second of a core, in steps between which pages are answered."""


class Syncing:
    """Nothing it asks for depends on what the reader does."""

    def __init__(
        self,
        takeover: EncoderTakeover,
        default_list: DefaultListSync,
        pool: PoolSync,
        popularity: PopularitySync,
        pictures: PictureSync,
        stores: DeviceStores,
        bodies: Bodies,
        serving: Serving,
        settings: PerformanceSettings,
        clock: Callable[[], datetime],
    ) -> None:
        self._takeover = takeover
        self._default_list = default_list
        self._pool = pool
        self._popularity = popularity
        self._pictures = pictures
        self._stores = stores
        self._bodies = bodies
        self._serving = serving
        self._settings = settings
        self._clock = clock
        self._lock, self._pictures_lock = Lock(), Lock()
        self._pruned_at: datetime | None = None
        self._texts_checked = False
        self.online: bool | None = None
        self.last_at: datetime | None = None
        self.silent_since_sec: float | None = None
        """When the first of the steps failed that were not answered since, on the system's own clock."""

    def step(self) -> bool:
        """One look at everything; True if another release is in use now.

        Raises BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused; what was there before stays.
        """
        with self._lock:
            try:
                swapped = self._takeover.step()
                self._take_default_list(self._default_list.refresh())
                self._pool.refresh()
                self._popularity.refresh()
            except BackendUnreachable:
                self.online = False
                self.silent_since_sec = self.silent_since_sec or time.monotonic()
                raise
            self.reached()
            self.online, self.silent_since_sec = True, None
            self.last_at = self._clock()
            self._prune(self.last_at)
            self._stores.search_index.catch_up(INDEXED_A_STEP)
            self._stores.pool_index.catch_up(POOL_INDEXED_A_STEP)
            return swapped

    def take_pictures(self) -> None:
        """The publishers' pictures, after a step that went well.

        Apart from it: whatever a server gives as pictures, or if it gives none, keeps nothing else back and is no
        trouble of the pages, which have drawn ones. It is logged; those of before stay, and the next look goes on.
        """
        with self._pictures_lock:
            try:
                self._pictures.refresh()
            except (AnswerMalformed, BackendRefused, BackendUnreachable) as trouble:
                log.info("pictures: %s", trouble)

    def reached(self) -> None:
        """The backend that was out of reach is there again; the next step finds out whether it answers."""
        self._serving.reached()
        if self.online is False:
            self.online = True

    def _take_default_list(self, answer: RecallAnswer | None) -> None:
        """Queue the texts of the whole list when it is new, and once a start when some are missing."""
        models = self._serving.models()
        if answer is not None:
            self._bodies.want(answer, read_vectors(answer, models.dimensions), common=True)
        elif not self._texts_checked:
            default_list = self._serving.feed_context.default_list.candidates(models.encoder, models.dimensions)
            if self._stores.news.without_body([card.id for card in default_list.cards]):
                kept = RecallAnswer(
                    release=models.release, encoder=models.encoder, candidates=default_list.cards, vectors=b""
                )
                self._bodies.want(kept, default_list.vectors, common=True)
        self._texts_checked = True

    def _prune(self, now: datetime) -> None:
        if self._pruned_at is not None and now - self._pruned_at < PRUNE_EVERY:
            return
        self._pruned_at = now
        default_list = self._stores.default_list.current()
        last = self._serving.last()
        keep = {
            *(default_list.news_ids if default_list else ()),
            *(item.card.id for item in (last.items if last else ())),
        }
        self._stores.news.prune(now - timedelta(days=self._settings.news_days), keep)
        self._stores.search_index.tidy()
        self._stores.impressions.prune(now - IMPRESSIONS_KEPT)
