"""Holds the current feed and models, and replaces each as a whole while the reader keeps reading."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import RLock

from device_app.errors import BackendUnreachable, DeviceError
from device_app.feed.build import FeedContext, Promise, build_feed, promised
from device_app.feed.candidates import Candidates
from device_app.feed.item import Feed, FeedItem
from device_app.feed.model_cache import ModelCache, ServingModels
from device_app.feed.more import grown
from device_app.feed.preference_reader import UserPreferences
from device_app.reading.interest_profile import Profile, named_profile
from device_app.store.releases import InstalledReleases
from device_app.sync.installed_release import current_release
from protocol.releases import ReleaseManifest


class Serving:
    """Serves one reader a stable page. Thread-safe: one feed is built at a time.

    Other threads wait for it. The newest feed stays unchanged, across restarts, until the reader asks for another or it
    is `page_hours` old. `erasures` counts erases: work that started before the last one is stale.
    """

    def __init__(self, feed_context: FeedContext, releases: InstalledReleases, model_cache: ModelCache) -> None:
        self.feed_context = feed_context
        self._releases = releases
        self._model_cache = model_cache
        self._lock = RLock()
        self._forgetting = RLock()  # held while stored feeds are loaded or erased; never while one is built
        self._models: ServingModels | None = None
        self._last: Feed | None = None
        self._unreachable: BackendUnreachable | None = None  # until the server answers again
        self._not_made: Feed | None = None  # offline feed shown instead of a page that was requested
        self._promise: tuple[str, Promise] | None = None  # what the page with this id offers
        self._state = object()  # replaced at each change of the reader's preferences
        self.erasures = 0
        self._built_in: object | None = None

    def models(self) -> ServingModels:
        """Return the models of the release in use. Raises NoRelease or ReleaseRefused."""
        with self._lock:
            if self._models is None:
                self._models = self._model_cache.models(current_release(self._releases))
            return self._models

    def loaded(self) -> ServingModels | None:
        """Return the models in use if they are loaded, else None."""
        return self._models

    def manifest(self) -> ReleaseManifest | None:
        """Return the manifest of the release in use, even before its models load.

        None before the first.
        """
        if self._models is not None:
            return self._models.manifest
        kept = self._releases.current()
        return None if kept is None else kept.manifest

    def swap(self) -> None:
        """Switch to a newly installed release; loads it before dropping the previous one."""
        models = self._model_cache.models(current_release(self._releases))
        with self._lock:
            self._models = models

    def feed(self, *, refresh: bool) -> Feed:
        """Return the current page, or a new one if requested or due.

        While the server is unreachable, a requested new page is the last one, marked 'offline'. Raises NoRelease or
        ReleaseRefused.
        """
        with self._lock:
            last, away = self.last(), self._unreachable
            if not refresh and last is not None and self._holds(last):
                return self._not_made or last
            if away is not None and last is not None and last.items:
                self._not_made = self.offline(away)
                return self._not_made
            state = self._state
            promise = self._promise[1] if self._promise and last and self._promise[0] == last.feed_id else None
            feed = build_feed(self.feed_context, self.models(), promise)
            self._last, self._not_made, self._built_in = feed, None, state
            return feed

    def promised(self, feed_id: str, new: frozenset[str]) -> int:
        """Return how many of these new stories the page after this one will show.

        The next page keeps the promise. Drafts a page unless the same stories were new at the last call. Raises
        NoRelease or ReleaseRefused.
        """
        with self._lock:
            if self._promise is None or self._promise[0] != feed_id or self._promise[1].known != new:
                self._promise = (feed_id, promised(self.feed_context, self.models(), new)) if new else None
            return 0 if self._promise is None else len(self._promise[1].placed)

    def more(self, feed_id: str) -> Feed | None:
        """Return a stored feed with more stories at its end; None if it isn't stored.

        Raises NoRelease or ReleaseRefused.
        """
        with self._lock:
            feed = self.page(feed_id)
            if feed is None or not feed.items:
                return feed
            longer = grown(self.feed_context, self.models(), feed)
            if self._last is not None and self._last.feed_id == feed_id:
                self._last = longer
            return longer

    def _holds(self, feed: Feed) -> bool:
        """Return whether a feed is still the page in use.

        An empty feed isn't, nor is one that is too old or dated far in the future.
        """
        age = abs(self.feed_context.clock() - feed.made_at)
        return bool(feed.items) and age < timedelta(hours=self.feed_context.weights.page_hours)

    def changed(self) -> None:
        """Note that the reader changed a preference, so that a new page is offered.

        Doesn't wait for a build.
        """
        self._state = object()

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """Erase the reader's data in this block.

        No feed is built meanwhile, and none stays in memory.
        """
        with self._lock, self._forgetting:
            yield
            self.changed()
            self._last = self._not_made = self._promise = None
            self.feed_context.recall.forget()
            self.feed_context.user_preferences.forget()
            self.erasures += 1

    @contextmanager
    def still(self) -> Iterator[None]:
        """Hold the lock: no feed is built and nothing is erased in this block."""
        with self._lock:
            yield

    def reached(self) -> None:
        """Note that the server answered or can be reached again."""
        self._unreachable = self._not_made = None

    def unreachable(self, trouble: BackendUnreachable) -> None:
        """Note that a background task couldn't reach the server."""
        self._unreachable = trouble

    def online(self) -> bool:
        """Return whether the server was reachable when the background last tried."""
        return self._unreachable is None

    def forget_clicks(self, news_ids: Collection[str]) -> None:
        """Remove deleted clicks from the reasons of all stored feeds."""
        with self._lock, self._forgetting:
            self.feed_context.kept.forget_clicks(news_ids)
            self._last = self._not_made = None
        self.changed()

    def page(self, feed_id: str) -> Feed | None:
        last = self._last
        return last if last is not None and last.feed_id == feed_id else self.feed_context.kept.feed(feed_id)

    def item(self, feed_id: str | None, news_id: str) -> FeedItem | None:
        feed = self.page(feed_id) if feed_id else None
        return next((item for item in feed.items if item.card.id == news_id), None) if feed else None

    def last(self) -> Feed | None:
        """Return the newest feed, which may be from an earlier run."""
        with self._forgetting:  # without the lock, a feed read just before an erase would stay in memory
            if self._last is None:
                self._last = self.feed_context.kept.last()
            return self._last

    def changed_since(self) -> bool:
        """Return whether the reader changed a preference since the newest feed was made in this run."""
        return self._built_in is not None and self._built_in is not self._state

    def offline(self, trouble: DeviceError) -> Feed:
        """Return the last feed, marked 'offline'."""
        return self.feed_context.kept.offline(trouble)

    def known_news(self) -> tuple[Candidates, UserPreferences]:
        """Return the last answer joined with the default list, and the reader's preferences.

        Raises NoRelease or ReleaseRefused.
        """
        models = self.models()
        default_list = self.feed_context.default_list.candidates(models.encoder, models.dimensions)
        reading = self.feed_context.user_preferences.reading(models.encoder)
        return self.feed_context.recall.known(default_list), self.feed_context.user_preferences.user_preferences(
            reading, models.encoder, models.dimensions
        )

    def profile(self) -> Profile:
        """Return the reader's current interests. Raises NoRelease or ReleaseRefused."""
        models = self.models()
        reading = self.feed_context.user_preferences.reading(models.encoder)
        user_preferences = self.feed_context.user_preferences.user_preferences(
            reading, models.encoder, models.dimensions
        )
        labels = models.recall.clusters(models.recall.contexts(user_preferences.click_vectors))
        return named_profile(reading.active, reading.muted, labels, reading.kept)
