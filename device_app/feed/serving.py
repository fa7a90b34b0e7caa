"""The feed in use and the models in use, swapped whole while readers go on reading."""

from __future__ import annotations

import time
from threading import RLock

from device_app.errors import DeviceError
from device_app.feed.build import FeedContext, build_feed
from device_app.feed.candidates import Candidates
from device_app.feed.item import Feed, FeedItem
from device_app.feed.model_cache import ModelCache, ServingModels
from device_app.feed.preferences import UserPreferences
from device_app.interests.profile import Profile, named_profile
from device_app.store.releases import InstalledReleases
from device_app.sync.release import current_release

OFFLINE_RETRY_SEC = 10.0
"""An offline feed is served so long before the backend is tried again."""


class Serving:
    """Serves one reader. Safe for several threads: one feed is built at a time, and the others wait for it."""

    def __init__(self, feed_context: FeedContext, releases: InstalledReleases, model_cache: ModelCache) -> None:
        self.feed_context = feed_context
        self._releases = releases
        self._model_cache = model_cache
        self._lock = RLock()
        self._models: ServingModels | None = None
        self._current: tuple[Feed, object] | None = None
        self._last: Feed | None = None
        self._state = object()  # of what the reader did: another one after each change
        self._good_until_sec = 0.0

    def models(self) -> ServingModels:
        """The models of the release in use. Raises NoRelease or ReleaseRefused."""
        with self._lock:
            if self._models is None:
                self._models = self._model_cache.models(current_release(self._releases))
            return self._models

    def loaded(self) -> ServingModels | None:
        """The models in use if they are loaded."""
        return self._models

    def swap(self) -> None:
        """A release was installed: load it before letting go of the one before."""
        models = self._model_cache.models(current_release(self._releases))
        with self._lock:
            self._models = models

    def feed(self, *, refresh: bool) -> Feed:
        """The feed in use if nothing happened since and it is young, or a new one. Raises NoRelease, ReleaseRefused."""
        with self._lock:
            current = self._current
            state = self._state
            if current is not None and not refresh and time.monotonic() < self._good_until_sec:
                feed, built_in = current
                if built_in is state:
                    return feed
            feed = build_feed(self.feed_context, self.models())
            good_sec = OFFLINE_RETRY_SEC if feed.mode == "offline" else self.feed_context.performance.recall_max_age_sec
            self._good_until_sec = time.monotonic() + good_sec
            self._current = feed, state
            if feed.mode != "offline":
                self._last = feed
            return feed

    def changed(self) -> None:
        """The reader did something that the next feed should know. Waits for no feed that is being built."""
        self._state = object()
        self._current = None

    def erased(self) -> None:
        """Nothing of the reader may be left in memory."""
        with self._lock:
            self.changed()
            self._last = None
            self.feed_context.recall.forget()
            self.feed_context.user_preferences.forget()

    def item(self, feed_id: str | None, news_id: str) -> FeedItem | None:
        """The item of a feed, for its reason."""
        if not feed_id:
            return None
        last = self._last
        if last is not None and last.feed_id == feed_id:
            return next((item for item in last.items if item.card.id == news_id), None)
        return self.feed_context.kept.item(feed_id, news_id)

    def last(self) -> Feed | None:
        """The newest feed, also one of an earlier run."""
        if self._last is None:
            self._last = self.feed_context.kept.last()
        return self._last

    def offline(self, trouble: DeviceError) -> Feed:
        """The last feed, marked as such."""
        return self.feed_context.kept.offline(trouble)

    def known_news(self) -> tuple[Candidates, UserPreferences]:
        """The last answer and the default list together, and what the reader told. Raises NoRelease, ReleaseRefused."""
        models = self.models()
        default_list = self.feed_context.default_list.candidates(models.encoder, models.dimensions)
        reading = self.feed_context.user_preferences.reading(models.encoder)
        return self.feed_context.recall.known(default_list), self.feed_context.user_preferences.user_preferences(
            reading, models.encoder, models.dimensions
        )

    def profile(self) -> Profile:
        """The reader's interests as they are now. Raises NoRelease or ReleaseRefused."""
        models = self.models()
        reading = self.feed_context.user_preferences.reading(models.encoder)
        user_preferences = self.feed_context.user_preferences.user_preferences(
            reading, models.encoder, models.dimensions
        )
        labels = models.recall.clusters(models.recall.contexts(user_preferences.click_vectors))
        return named_profile(reading.active, reading.muted, labels, reading.kept)
