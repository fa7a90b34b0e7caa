"""The feed in use and the models in use, swapped whole while readers go on reading."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import RLock

from device_app.errors import DeviceError
from device_app.feed.build import FeedContext, build_feed
from device_app.feed.candidates import Candidates
from device_app.feed.item import Feed, FeedItem
from device_app.feed.model_cache import ModelCache, ServingModels
from device_app.feed.more import grown
from device_app.feed.preferences import UserPreferences
from device_app.interests.profile import Profile, named_profile
from device_app.store.releases import InstalledReleases
from device_app.sync.installed_release import current_release
from device_app.wire.releases import ReleaseManifest

OFFLINE_RETRY_SEC = 10.0
"""An offline feed is served so long before the backend is tried again."""


class Serving:
    """Serves one reader a page that holds still. Safe for several threads: one feed is built at a time, and the others
    wait for it.

    The newest feed stays as it is, over restarts too, until the reader asks for another or it is `page_hours` old.
    `erasures` is how often everything was erased: what was begun before the last time tells of what there was.
    """

    def __init__(self, feed_context: FeedContext, releases: InstalledReleases, model_cache: ModelCache) -> None:
        self.feed_context = feed_context
        self._releases = releases
        self._model_cache = model_cache
        self._lock = RLock()
        self._forgetting = RLock()  # held while kept feeds are read into memory or forgotten; never while one is built
        self._models: ServingModels | None = None
        self._last: Feed | None = None
        self._offline: tuple[Feed, float] | None = None
        self._failed_sec = -math.inf  # when the last page was begun that failed
        self._reached_sec = -math.inf
        self._state = object()  # of what the reader said: another one after each change
        self.erasures = 0
        self._built_in: object | None = None

    def models(self) -> ServingModels:
        """The models of the release in use. Raises NoRelease or ReleaseRefused."""
        with self._lock:
            if self._models is None:
                self._models = self._model_cache.models(current_release(self._releases))
            return self._models

    def loaded(self) -> ServingModels | None:
        """The models in use if they are loaded."""
        return self._models

    def manifest(self) -> ReleaseManifest | None:
        """Of the release in use, also before its models are loaded; None before the first."""
        if self._models is not None:
            return self._models.manifest
        kept = self._releases.current()
        return None if kept is None else kept.manifest

    def swap(self) -> None:
        """A release was installed: load it before letting go of the one before."""
        models = self._model_cache.models(current_release(self._releases))
        with self._lock:
            self._models = models

    def feed(self, *, refresh: bool) -> Feed:
        """The page in use, or a new one when asked for or due. Raises NoRelease, ReleaseRefused.

        When a new one can't be made the last feed comes back, marked 'offline', and is served for some seconds.
        """
        with self._lock:
            if not refresh:
                if self._offline is not None and self.online() is False:
                    return self._offline[0]
                last = self.last()
                if last is not None and self._holds(last):
                    return last
            state, began_sec = self._state, time.monotonic()
            feed = build_feed(self.feed_context, self.models())
            if feed.mode == "offline":
                self._failed_sec = began_sec
                self._offline = feed, time.monotonic() + OFFLINE_RETRY_SEC
                return feed
            self.reached()
            self._last, self._offline, self._built_in = feed, None, state
            return feed

    def more(self, feed_id: str) -> Feed | None:
        """A kept feed with more stories at its end, None if it isn't kept. Raises NoRelease, ReleaseRefused."""
        with self._lock:
            feed = self.page(feed_id)
            if feed is None or not feed.items:
                return feed
            longer = grown(self.feed_context, self.models(), feed)
            if self._last is not None and self._last.feed_id == feed_id:
                self._last = longer
            return longer

    def _holds(self, feed: Feed) -> bool:
        """Whether a feed is still the page in use. An empty one is no page, nor is one from far ahead of the clock."""
        age = abs(self.feed_context.clock() - feed.made_at)
        return bool(feed.items) and age < timedelta(hours=self.feed_context.weights.page_hours)

    def changed(self) -> None:
        """The reader said something that another page would follow: it is offered. Waits for no feed being built."""
        self._state = object()

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """What is kept of the reader is erased in the block: no feed is built meanwhile, and none stays in memory."""
        with self._lock, self._forgetting:
            yield
            self.changed()
            self._last = self._offline = None
            self.feed_context.recall.forget()
            self.feed_context.user_preferences.forget()
            self.erasures += 1

    def reached(self) -> None:
        """The backend answered, or can be reached again: that a page begun before failed tells nothing any more."""
        self._reached_sec = time.monotonic()

    def online(self) -> bool | None:
        """What the last new page tells of the backend: False where it could not be made just now, None where that was
        a while ago and nothing was heard since, else True."""
        offline = self._offline
        if offline is None or self._failed_sec < self._reached_sec:
            return True
        return False if time.monotonic() < offline[1] else None

    def forget_clicks(self, news_ids: Collection[str]) -> None:
        """The reader deleted clicks: no reason of a kept feed may name them."""
        with self._lock, self._forgetting:
            self.feed_context.kept.forget_clicks(news_ids)
            self._last = self._offline = None
        self.changed()

    def page(self, feed_id: str) -> Feed | None:
        """A feed by its id, as long as it is kept."""
        last = self._last
        return last if last is not None and last.feed_id == feed_id else self.feed_context.kept.feed(feed_id)

    def item(self, feed_id: str | None, news_id: str) -> FeedItem | None:
        """The item of a feed, for its reason."""
        feed = self.page(feed_id) if feed_id else None
        return next((item for item in feed.items if item.card.id == news_id), None) if feed else None

    def last(self) -> Feed | None:
        """The newest feed, also one of an earlier run."""
        with self._forgetting:  # else one that was read just before it was forgotten would stay
            if self._last is None:
                self._last = self.feed_context.kept.last()
            return self._last

    def told_since(self) -> bool:
        """Whether the reader said something since the newest feed was made, in this run."""
        return self._built_in is not None and self._built_in is not self._state

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
