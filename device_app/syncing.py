"""One background sync step: release, default list, pool, popularity, then pruning.

Pictures are fetched separately afterwards.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from device_app.errors import AnswerMalformed, BackendRefused, BackendUnreachable, DeviceError
from device_app.feed.bodies import Bodies
from device_app.feed.serving import Serving
from device_app.settings import PerformanceSettings
from device_app.stores import DeviceStores
from device_app.sync.default_list import DefaultListSync, PopularitySync
from device_app.sync.encoder_takeover import EncoderTakeover
from device_app.sync.picture_sync import PictureSync
from device_app.sync.pool_codes import PoolSync
from device_app.uplink.backend_client import read_vectors
from protocol.recall import DefaultListAnswer, RecallAnswer

log = logging.getLogger(__name__)

PRUNE_EVERY = timedelta(hours=6)
IMPRESSIONS_KEPT = timedelta(days=60)
READ_MARKS_KEPT = timedelta(days=400)
"""How long a story that left this device still counts as read, should it come back."""
INDEXED_A_STEP = 1_000
"""Maximum number of articles indexed in one step; a search indexes the rest itself."""
POOL_INDEXED_A_STEP = 10_000
"""Maximum number of pool cards indexed in one step, about a second of one core.

Pages are answered between steps.
"""


class Syncing:
    """Keeps a device up to date. None of its requests depends on what the reader does."""

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
        self._takeover, self._default_list, self._pool = takeover, default_list, pool
        self._popularity, self._pictures, self._stores = popularity, pictures, stores
        self._bodies, self._serving, self._settings, self._clock = bodies, serving, settings, clock
        self._lock, self._pictures_lock = Lock(), Lock()
        self._pruned_at: datetime | None = None
        self._texts_checked = False
        self.online: bool | None = None
        self.last_at: datetime | None = None
        self.silent_since_sec: float | None = None
        """Monotonic time of the first step that got no answer since the last answer, or None."""
        self._failed: DeviceError | None = None

    def step(self) -> bool:
        """Run one sync step; return True if the release changed.

        Raises BackendUnreachable, BackendRefused, AnswerMalformed or ReleaseRefused; earlier data stays.
        """
        with self._lock:
            return self._step()

    def first(self) -> bool:
        """Run the first step since the start, or wait for it; return False if it was already done.

        Raises what `step` raises. A failed step is not retried here but in the background, at its own pace, so that no
        request shows that a reader tried to open a page. After an erase there is no list, so another step runs.
        """
        with self._lock:
            if self._failed is not None:
                raise self._failed
            if self.last_at is not None and self._serving.feed_context.default_list.known():
                return False
            self._step()
            return True

    def _step(self) -> bool:
        try:
            swapped = self._takeover.step()
            self._take_default_list(self._default_list.refresh())
            self._pool.refresh()
            self._popularity.refresh()
        except BackendUnreachable as unreachable:
            self.online = False
            self.silent_since_sec = self.silent_since_sec or time.monotonic()
            self._serving.unreachable(unreachable)
            self._failed = unreachable
            raise
        except DeviceError as refused:
            self._failed = refused
            raise
        self.reached()
        self.online, self.silent_since_sec = True, None
        self.last_at, self._failed = self._clock(), None
        self._prune(self.last_at)
        self._stores.search_index.catch_up(INDEXED_A_STEP)
        self._stores.pool_index.catch_up(POOL_INDEXED_A_STEP)
        return swapped

    def take_pictures(self) -> None:
        """Fetch the publishers' pictures after a successful step.

        This is separate, so that bad or missing pictures don't delay anything else. Failures are only logged, since
        pages have drawn pictures too: earlier pictures stay, and the next step continues.
        """
        with self._pictures_lock:
            try:
                self._pictures.refresh()
            except (AnswerMalformed, BackendRefused, BackendUnreachable) as trouble:
                log.info("pictures: %s", trouble)

    def unreachable(self, trouble: BackendUnreachable) -> None:
        """Note that the watched connection to the server was lost."""
        self._serving.unreachable(trouble)

    def reached(self) -> None:
        """Note that the server can be reached again; the next step finds out whether it answers."""
        self._serving.reached()
        if self.online is False:
            self.online = True

    def _take_default_list(self, answer: DefaultListAnswer | None) -> None:
        """Queue the texts of new articles on the list, or of all: once per run, and after some could not be fetched.

        In the second case it requests all, whichever are stored, since those depend on what was read.
        """
        models = self._serving.models()
        if answer is not None and (answer.order is None or (self._texts_checked and not self._bodies.lost_some())):
            self._bodies.want(answer, read_vectors(answer, models.dimensions), common=True)
        elif answer is not None or not self._texts_checked:
            default_list = self._serving.feed_context.default_list.candidates(models.encoder, models.dimensions)
            if answer is not None or self._stores.news.without_body([card.id for card in default_list.cards]):
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
        self._stores.read_marks.prune(now - READ_MARKS_KEPT)
