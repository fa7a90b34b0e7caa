"""One reader's device: the verbs of its pages, of its background loops and of the fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from device_app.alerts import LoopAlerts
from device_app.copies import Copies
from device_app.errors import DeviceError, NoRelease, ReleaseRefused, StoreDamaged
from device_app.feed.bodies import Bodies
from device_app.feed.following import following_items
from device_app.feed.held_lists import HeldLists
from device_app.feed.item import Article, Feed, FeedItem
from device_app.feed.offer import Offer, offered
from device_app.feed.serving import Serving
from device_app.feed.stories import Stories
from device_app.feed.viewing import Viewing
from device_app.feed.whole_pool import SearchResults, WholePool
from device_app.interests.names import InterestNames
from device_app.interests.profile import ClickedNews, InterestCluster, clicks_of, interest_cards
from device_app.interests.proper_names import forget_names
from device_app.interests.searched import SearchedInterests
from device_app.moving import Moving
from device_app.privacy.ledger import Ledger
from device_app.privacy.limits import Limits
from device_app.settings import DeviceSettings, PrivacySettings
from device_app.store.opinions import ReactionKind, Stance, StanceKind
from device_app.store.preferences import CHOSEN_SECTIONS, PICTURES_HIDDEN, TAKEN_OVER, TRAINING_PAUSED
from device_app.store.profile import ProfileLock
from device_app.store.searches import SavedSearch
from device_app.stores import DeviceStores
from device_app.sync.installed_release import Release, current_release
from device_app.syncing import Syncing
from device_app.training.participant import Outcome
from device_app.training.trainer import Trainer
from device_app.uplink.backend_client import Uplink
from device_app.uplink.watch import BackendWatch
from device_app.view_models.explore import ExploreSection, explore_sections
from device_app.view_models.export import export_all
from device_app.view_models.history import HistoryPage, history_page
from device_app.view_models.latency import LatencyView, latest
from device_app.view_models.privacy import PrivacyView, privacy_view
from device_app.view_models.searches import SearchesView, searches_view
from device_app.view_models.status import StatusView, status_view
from device_app.view_models.today import LEFT_BEFORE_ERASE, left_so_far
from device_app.view_models.traffic import RequestGroup, ShownTraffic, TrafficDetail, request_group_page, traffic_view
from device_app.view_models.training import TrainingView, training_view
from device_app.wire.news import NewsCard

PRIVACY_CHANGES = "privacy"


@dataclass(frozen=True)
class Parts:
    """What composition puts into a device."""

    stores: DeviceStores
    uplink: Uplink
    ledger: Ledger
    serving: Serving
    bodies: Bodies
    syncing: Syncing
    stories: Stories
    viewing: Viewing
    names: InterestNames
    searched: SearchedInterests
    trainer: Trainer
    alerts: LoopAlerts
    copies: Copies
    lock: ProfileLock
    watch: BackendWatch | None
    clock: Callable[[], datetime]


class Device:
    """Safe for several threads. Errors are DeviceErrors, each one plain sentence."""

    def __init__(self, settings: DeviceSettings, parts: Parts) -> None:
        self.settings, self.parts, self.alerts, self.more = settings, parts, parts.alerts, parts.serving.more
        self._stores, self._serving, self._clock = parts.stores, parts.serving, parts.clock
        self.lists = HeldLists(parts.stores, settings.feed.page_hours, parts.clock)
        self.moving = Moving(
            parts.stores, parts.ledger, parts.names, parts.copies, self.set_privacy, parts.serving.changed,
            keeps_switches=settings.own_feeds,
        )  # fmt: skip
        self.whole_pool = WholePool(parts.stores, parts.serving, self.lists, parts.clock)

    def feed(self, *, refresh: bool = False) -> Feed:
        """The page in use, or a new one when asked to refresh or where the one in use is hours old.

        What the reader does changes no page: see `offer`. Never raises for a backend that is down or refuses.
        """
        if not self._serving.feed_context.default_list.known():
            try:
                self.sync()
            except DeviceError as trouble:
                return self._serving.offline(trouble)
        try:
            return self._serving.feed(refresh=refresh)
        except (NoRelease, ReleaseRefused) as trouble:
            return self._serving.offline(trouble)

    def page(self, feed_id: str) -> Feed | None:
        """A feed as it was made, of the last hundred; None if it isn't kept."""
        return self._serving.page(feed_id)

    def page_path(self, feed_id: str | None) -> str:
        """Where a feed's page is: the newest one's is the front page, and so is that of one that isn't kept."""
        after = self._stores.feeds.beside(feed_id)[1] if feed_id else None
        return "/" if after is None else f"/page/{feed_id}"

    def offer(self, feed: Feed) -> Offer:
        """Why another page would differ from this one. Nothing is asked of anybody for it."""
        return offered(feed, self._stores, self._serving)

    def view(self, feed_id: str, news_ids: Sequence[str]) -> int:
        """A page's script has seen that these were looked at; returns of how many that is news."""
        return self.parts.viewing.report(feed_id, news_ids)

    def read_news(self) -> frozenset[str]:
        """Ids of all news that was opened."""
        return frozenset(self._stores.clicks.clicked())

    def open(self, news_id: str, feed_id: str | None = None, *, found: bool = False, clicked: bool = True) -> Article:
        """Commit the click, then give the story from this device alone; found: among the results of a search.

        clicked: whether the reader followed a link to it; if not, nothing is recorded. Raises UnknownNews.
        """
        return self.parts.stories.open(news_id, feed_id, found=found, clicked=clicked)

    def react(self, news_id: str, kind: ReactionKind) -> bool:
        """Like, less or save a story; the same again takes it back. Returns whether it stands. Raises UnknownNews."""
        self._stores.news.card(news_id)
        stands = not self._stores.feedback.retract(news_id, kind)
        if stands:
            self._stores.feedback.react(news_id, kind, self._clock())
        self._stores.fold()
        return stands

    def reactions(self) -> dict[str, frozenset[str]]:
        """Kinds of reaction by news id."""
        return self._stores.feedback.kinds()

    def saved(self) -> list[NewsCard]:
        """Saved news, last saved first; what is no longer on the device is left out."""
        return self._stores.news.cards([one.news_id for one in self._stores.feedback.reactions("save")])

    def unwanted(self) -> list[NewsCard]:
        """News the reader wants less of, last said first; what is no longer on the device is left out."""
        return self._stores.news.cards([one.news_id for one in self._stores.feedback.reactions("less")])

    def stance(self, kind: StanceKind, name: str, stance: Stance | None) -> None:
        """Follow or block a topic, section or publisher; None takes it back."""
        with self.parts.copies.deleting():
            self._stores.stances.set(kind, name, stance, self._clock())
        self._stores.fold()
        self._serving.changed()

    def stances(self) -> dict[tuple[str, str], str]:
        """'follow' or 'block' by (kind, name)."""
        return self._stores.stances.all()

    def search(self, text: str, page: int = 1) -> SearchResults:
        """News on this device that has every word of `text`, best first. Nothing is asked of anybody."""
        return self.whole_pool.search(text, page)

    def save_search(self, words: str) -> SavedSearch:
        """Keep a search. Raises ValueError for a blank or overlong text, or beyond fifty of them."""
        saved = self._stores.searches.save(words, self._clock())
        self._serving.changed()
        return saved

    def delete_search(self, search_id: int) -> bool:
        """Delete a saved search for good; False if there was none. A report made with it goes on until it is due."""
        with self.parts.copies.deleting():
            gone = self._stores.searches.delete(search_id)
        self.parts.trainer.forget_unsent()
        self._stores.fold()
        self._serving.changed()
        return gone

    def searches(self) -> SearchesView:
        """What is saved and followed, with how much of it is here now, and what it is used for."""
        return searches_view(self._stores, self.parts.ledger.settings, self.whole_pool.hits)

    def explore(self) -> tuple[ExploreSection, ...]:
        """The default list by section; empty before the first sync."""
        listed = self._serving.feed_context.default_list
        return explore_sections(self._stores, listed, self._clock(), self.settings.feed)

    def popular(self) -> tuple[NewsCard, ...]:
        """What is popular now, of the news on this device, most popular first. Raises NoRelease."""
        return self._serving.feed_context.popular.now(*self._serving.known_news())

    def popular_since(self) -> datetime | None:
        """When the newest private count behind it was opened; None where nothing was counted yet."""
        return self._serving.feed_context.popular.counted_at()

    def following(self) -> tuple[FeedItem, ...]:
        """News of what the reader follows, from the default list and the last answer. Raises NoRelease."""
        return following_items(*self._serving.known_news(), self._clock(), self.settings.feed.half_life_hours)

    def interests(self) -> tuple[InterestCluster, ...]:
        """The reader's interests, heaviest first. Raises NoRelease."""
        return interest_cards(self._serving.profile(), self.parts.names.kept())

    def rename(self, key: int, name: str) -> None:
        """Name the interest that holds click `key`; blank gives its label back. Raises ValueError if too long."""
        self.parts.names.name([click.card.id for click in self._interest(key)], name)
        self._serving.changed()

    def mute(self, key: int, muted: bool) -> None:
        """Leave an interest out of feed and reports, or take it in again; the next report is drawn afresh."""
        with self.choosing():
            self.parts.names.mute([click.card.id for click in self._interest(key)], muted)
        self._stores.report_memo.clear()
        self._serving.changed()

    def forget(self, key: int) -> None:
        """Delete the clicks of an interest for good; the next report is drawn afresh."""
        news_ids = {click.card.id for click in self._interest(key)}
        with self.parts.copies.deleting():
            self._stores.clicks.delete_news(news_ids)
            self._stores.searches.forget_opened(sorted(news_ids))
            self.parts.names.forget(news_ids)
            self._serving.forget_clicks(news_ids)
            self._stores.report_memo.clear()
        self.parts.trainer.forget_unsent()
        self._stores.fold()

    def history(self, query: str = "", page: int = 1) -> HistoryPage:
        """Clicks newest first, all or those whose card has every word of `query`."""
        return history_page(self._stores, query, page)

    def delete_click(self, click_id: int) -> bool:
        """Delete one click for good; False if there was none. A report made from it goes on until it is due."""
        news_id = self._stores.clicks.news_of(click_id)
        with self.parts.copies.deleting():
            gone = self._stores.clicks.delete(click_id)
            if news_id is not None:
                self._stores.searches.forget_opened([news_id])
                self._serving.forget_clicks([news_id])
        self.parts.trainer.forget_unsent()
        self._stores.fold()
        return gone

    def privacy(self, page: int = 1, shown: ShownTraffic | None = None) -> PrivacyView:
        """What left this device, what it could reveal, and the switches; page counts lines of the log from 1.

        shown: 'concerning' or 'all'; by default what concerned the reader, or all where nothing did.
        """
        models = self._serving.loaded()
        return privacy_view(
            self._stores,
            self.parts.ledger,
            models.manifest if models else None,
            self._serving.profile().names if models else (),
            frozenset(self._stores.preferences.get(PRIVACY_CHANGES) or {}),
            page,
            shown,
            self._stores.releases.trusted_key(self.settings.pinned_key),
        )

    def traffic(self, entry_id: int) -> TrafficDetail | None:
        """One request to the byte, or None if it is not in the log."""
        entry = self._stores.byte_log.entry(entry_id)
        return None if entry is None else traffic_view(self._stores, entry)

    def polls(self, oldest_id: int, newest_id: int, page: int = 1) -> RequestGroup | None:
        """The requests behind one line of the log, a page at a time; None if they are no longer in it."""
        return request_group_page(self._stores, oldest_id, newest_id, page)

    def set_privacy(self, **changes: Any) -> PrivacySettings:
        """Change switches and keep them. Raises pydantic's ValidationError naming the field and its limit.

        Another limit of a report's cost, and letting searches weigh in it or no longer, has the report made anew.
        """
        before = self.parts.ledger.own
        settings = before.with_overrides(changes)
        if (settings.epsilon_per_report, settings.searches_in_reports) != (
            before.epsilon_per_report,
            before.searches_in_reports,
        ):
            self._stores.report_memo.clear()
        kept = self._stores.preferences.get(PRIVACY_CHANGES) or {}
        with self.choosing():
            self.parts.copies.allow(Limits.of(settings))
            self._stores.preferences.set(PRIVACY_CHANGES, kept | {name: getattr(settings, name) for name in changes})
            self.parts.ledger.own = settings
        self._serving.changed()
        return settings

    def export(self) -> dict[str, Any]:
        """Everything this device keeps."""
        views = {"searches": self._stores.search_database.known()}
        return export_all(self._stores.database, views, self.settings.profile, self._clock())

    def erase(self) -> None:
        """Delete everything about the reader but the privacy switches and that of pictures: what is off must stay off.

        The ledger's sums and the releases stay too (see Database.erase), and how often something left today without
        cost. Copies go, and damaged ones kept aside.
        """
        switches, left = self._stores.preferences.get(PRIVACY_CHANGES), left_so_far(self._stores, self.parts.ledger)
        with self.parts.copies.deleting(), self._serving.erasing(), self.lists.still():
            self.parts.copies.erase()
            stay = {name: self._stores.preferences.get(name) for name in (TAKEN_OVER, PICTURES_HIDDEN)}
            self._stores.erase({PRIVACY_CHANGES: switches, LEFT_BEFORE_ERASE: left} | stay)
            self.parts.viewing.forget()
            self.lists.forget()
            forget_names()

    def training(self) -> TrainingView:
        """The training page, by what the background has last seen: a look at it asks nothing of anybody."""
        parts, paused = self.parts, self.training_paused()
        return training_view(parts.trainer, self._stores, self.release(), parts.ledger, paused=paused)

    def pause_training(self, paused: bool) -> None:
        """Pause or go on; kept."""
        with self.choosing():
            self._stores.preferences.set(TRAINING_PAUSED, paused)

    def training_paused(self) -> bool:
        """Whether the reader has paused training."""
        return bool(self._stores.preferences.get(TRAINING_PAUSED))

    def latency(self) -> LatencyView:
        """The last 200 feeds."""
        return latest(self._stores.timings)

    def choose_sections(self, names: tuple[str, ...]) -> None:
        """The choice of the first visit (perhaps none); it stays here. Another page is offered, none is made."""
        self._stores.preferences.set(CHOSEN_SECTIONS, sorted(set(names)))
        self._serving.changed()

    def status(self) -> StatusView:
        """The figures that are always in sight."""
        settings, parts = self.settings, self.parts
        lost = parts.watch is not None and parts.watch.lost
        return status_view(settings, self._stores, parts.ledger, self._serving, parts.syncing, self.alerts, lost=lost)

    def release(self) -> Release | None:
        """The release in use, or None before the first sync."""
        try:
            return current_release(self._stores.releases)
        except NoRelease:
            return None

    def sync(self) -> bool:
        """One step of keeping up, then pictures; True if another release is in use now. Raises DeviceError."""
        with self.alerts.of("sync"):
            try:
                swapped = self.parts.syncing.step()
            finally:  # a key may be another one though its release was refused
                self.parts.copies.trust(self._stores.releases.trust())
        self.parts.syncing.take_pictures()
        return swapped

    def train_step(self) -> Outcome:
        """One background attempt to take part in a round. Raises for a fault of this device or of the release."""
        with self.alerts.of("training"):
            return self.parts.trainer.step()

    def prefetch_step(self) -> bool:
        """Fetch the texts of one returned list; False if none waits. For hosts without `app`'s threads."""
        with self.alerts.of("texts"):
            return self.parts.bodies.step()

    def copy_step(self) -> bool:
        """Copy the databases where a copy is missing or a day old; True if one was made. Raises StoreBroken."""
        with self.alerts.of("copy"):
            return self.parts.copies.step()

    def damage(self) -> StoreDamaged | None:
        """What is damaged in this device's databases, None if nothing is. It looks through every page."""
        try:
            self._stores.check()
        except StoreDamaged as damaged:
            return damaged
        return None

    def close(self) -> None:
        """Close connections and the database, and let go of the profile. Stop the background threads first."""
        self.parts.uplink.client.close()
        self._stores.close()
        self.parts.lock.release()

    @contextmanager
    def choosing(self) -> Iterator[None]:
        """A choice of the reader's is kept in the block, and carried into the copy of the database."""
        with self.parts.copies.held():
            yield
            self.parts.copies.choose(self._stores.preferences.rows())

    def _interest(self, key: int) -> tuple[ClickedNews, ...]:
        return clicks_of(self._serving.profile(), key)
