"""One reader's device: the interface for its pages, its background loops and a fleet, in parts."""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from device_app.alerts import LoopAlerts
from device_app.copies import Copies
from device_app.errors import BackendUnreachable, DeviceError, NoRelease, ReleaseRefused, StoreDamaged
from device_app.feed.bodies import Bodies
from device_app.feed.held_lists import HeldLists
from device_app.feed.item import Article, Feed
from device_app.feed.offer import Offer, offered
from device_app.feed.own_feeds import OwnFeeds
from device_app.feed.recall_step import RecallStep
from device_app.feed.serving import Serving
from device_app.feed.stories import Stories, Viewing
from device_app.feed.whole_pool import SearchResults, WholePool
from device_app.moving import Moving
from device_app.privacy.accounting.ledger import Ledger
from device_app.privacy.accounting.limits import Ceilings, Limits
from device_app.reading.interest_labels import forget_names
from device_app.reading.interest_profile import ClickedNews, InterestCluster, InterestNames, clicks_of, interest_cards
from device_app.reading.muting import Muting
from device_app.reading.searched_interests import SearchedInterests
from device_app.reports.policy import ReportPolicy
from device_app.settings import DeviceSettings, FeedSettings, PrivacySettings
from device_app.store.articles import Selection, Source
from device_app.store.opinions import ReactionKind, Stance, StanceKind
from device_app.store.preferences import CHOSEN_SECTIONS, PICTURES_HIDDEN, RARE_FIRST, TAKEN_OVER, TRAINING_PAUSED
from device_app.store.profile import ProfileLock
from device_app.store.searches import SavedSearch
from device_app.stores import DeviceStores
from device_app.sync.installed_release import Release, current_release
from device_app.sync.own_feeds import OwnFeedsSync
from device_app.syncing import Syncing
from device_app.training.participant import Outcome
from device_app.training.trainer import Trainer
from device_app.uplink.backend_client import Uplink
from device_app.uplink.watch import BackendWatch
from device_app.view_models.explore import (
    ExploreSection,
    HistoryPage,
    SearchesView,
    explore_sections,
    history_page,
    searches_view,
)
from device_app.view_models.export import export_all
from device_app.view_models.latency import LatencyView, latest
from device_app.view_models.privacy import PrivacyView, privacy_view
from device_app.view_models.status import StatusView, status_view
from device_app.view_models.traffic import (
    LEFT_BEFORE_ERASE,
    RequestGroup,
    ShownTraffic,
    TrafficDetail,
    left_so_far,
    request_group_page,
    traffic_view,
)
from device_app.view_models.training import TrainingView, training_view
from protocol.news import NewsCard
from protocol.own_feeds import Preparation

PRIVACY_CHANGES = "privacy"
JUDGED_A_STEP = 10_000
"""Maximum number of articles that one sync step checks against the reader's mute rules."""


@dataclass(frozen=True)
class Parts:
    """The parts that `composition` assembles into a device."""

    stores: DeviceStores
    uplink: Uplink
    ledger: Ledger
    policy: ReportPolicy
    serving: Serving
    bodies: Bodies
    syncing: Syncing
    stories: Stories
    viewing: Viewing
    names: InterestNames
    searched: SearchedInterests
    trainer: Trainer
    recall_step: RecallStep
    alerts: LoopAlerts
    copies: Copies
    lock: ProfileLock
    watch: BackendWatch | None
    own_server: OwnFeedsSync | None
    clock: Callable[[], datetime]

    @contextmanager
    def choosing(self) -> Iterator[None]:
        """Store a reader's choice in this block, and carry it into the database's copy."""
        with self.copies.held():
            yield
            self.copies.choose(self.stores.preferences.rows())


class Reading:
    """Pages and stories. Thread-safe, like all parts of a `Device`."""

    def __init__(self, parts: Parts, settings: FeedSettings, first_sync: Callable[[], None]) -> None:
        self._parts, self._stores, self._serving = parts, parts.stores, parts.serving
        self._clock, self._settings, self._first_sync = parts.clock, settings, first_sync
        self.more = parts.serving.more

    def feed(self, *, refresh: bool = False) -> Feed:
        """Return the current page, or a new one if requested or if it is too old.

        Actions of the reader don't change a page; see `offer`. Sends no request, unless this device has no list yet.
        Never raises because the server is down or refuses.
        """
        if self.preparing is not None:
            return self._serving.offline(NoRelease())
        if not self.has_list():
            try:
                self._first_sync()
            except DeviceError as trouble:
                return self._serving.offline(trouble)
        try:
            return self._serving.feed(refresh=refresh)
        except (NoRelease, ReleaseRefused) as trouble:
            return self._serving.offline(trouble)

    @property
    def preparing(self) -> Preparation | None:
        """Return the progress of the reader's own server in preparing to rank; None if it is ready."""
        own = self._parts.own_server
        if own is not None and own.listed is None and not self.has_list():
            return Preparation()  # it has just been started
        return None if own is None else own.preparing

    def newest(self, limit: int) -> list[NewsCard]:
        """Return the newest articles on this device, newest first, independent of what the reader reads."""
        found = self._stores.articles.page(Selection(), limit)
        return self._stores.news.cards([place.id for place in found])

    def page(self, feed_id: str) -> Feed | None:
        """Return one of the last hundred feeds unchanged, or None if it isn't stored."""
        return self._serving.page(feed_id)

    def page_path(self, feed_id: str | None) -> str:
        """Return the address of a feed's page.

        The newest feed, and one that isn't stored, is the front page.
        """
        after = self._stores.feeds.beside(feed_id)[1] if feed_id else None
        return "/" if after is None else f"/page/{feed_id}"

    def offer(self, feed: Feed) -> Offer:
        """Return why a new page would differ from this one; sends no request."""
        return offered(feed, self._stores, self._serving)

    def view(self, feed_id: str, news_ids: Sequence[str]) -> int:
        """Record stories that a page's script saw in view; return how many weren't recorded before."""
        return self._parts.viewing.report(feed_id, news_ids)

    def open(self, news_id: str, feed_id: str | None = None, *, found: bool = False, clicked: bool = True) -> Article:
        """Commit the click, then return the story; sends no request for it alone.

        found: opened from search results. clicked: whether the reader followed a link to it; if not, nothing is
        recorded. Raises NewsNotHere.
        """
        return self._parts.stories.open(news_id, feed_id, found=found, clicked=clicked)

    def click(self, news_id: str, feed_id: str | None = None, *, found: bool = False) -> None:
        """Commit the click on a story that `open` shows next.

        Raises NewsNotHere, and then records no click.
        """
        self._parts.stories.click(news_id, feed_id, found=found)

    def explore(self) -> tuple[ExploreSection, ...]:
        """Return the default list by section; empty before the first sync."""
        listed = self._serving.feed_context.default_list
        return explore_sections(self._stores, listed, self._clock(), self._settings)

    def popular(self) -> tuple[NewsCard, ...]:
        """Return popular articles on this device, most popular first. Raises NoRelease."""
        return self._serving.feed_context.popular.now(*self._serving.known_news())

    def popular_since(self) -> datetime | None:
        """Return when the newest private count that this list uses was opened; None before the first."""
        return self._serving.feed_context.popular.counted_at()

    def other_sources(self, card: NewsCard) -> list[Source]:
        """Return other publishers' reports of a story's event, newest first."""
        return self._stores.articles.other_sources(card)

    def has_list(self) -> bool:
        """Return whether the default list is on this device."""
        return self._serving.feed_context.default_list.known()


class ReaderLibrary:
    """What the reader has read, saved, reacted to and searched for, and the search on this device."""

    def __init__(self, parts: Parts, whole_pool: WholePool) -> None:
        self._parts, self._stores, self._serving = parts, parts.stores, parts.serving
        self._clock, self._whole_pool = parts.clock, whole_pool

    def read_news(self) -> Container[str]:
        """Return the ids of articles that were opened or marked as read."""
        return self._stores.read_marks

    def mark(self, news_ids: Sequence[str], *, read: bool = True) -> int:
        """Mark stories as read or unread; the ranking learns nothing from it.

        Returns the number of the mark, for `undo_mark`; 0 if nothing was marked as read.
        """
        if read:
            return self._stores.read_marks.mark(news_ids, self._clock())
        self._stores.read_marks.unmark(news_ids)
        return 0

    def marked(self, batch: int) -> int:
        """Return how many stories still count as read because of this mark."""
        return self._stores.read_marks.size(batch)

    def undo_mark(self, batch: int) -> int:
        """Undo a mark: its stories are unread again; return how many."""
        return self._stores.read_marks.undo(batch)

    def react(self, news_id: str, kind: ReactionKind) -> bool:
        """Like, save or want less of a story, or undo the same reaction. Raises NewsNotHere.

        Returns whether the reaction now holds.
        """
        self._stores.news.card(news_id)
        stands = not self._stores.feedback.retract(news_id, kind)
        if stands:
            self._stores.feedback.react(news_id, kind, self._clock())
        self._stores.fold()
        return stands

    def reactions(self) -> dict[str, frozenset[str]]:
        """Return the kinds of reaction by article id."""
        return self._stores.feedback.kinds()

    def saved(self) -> list[NewsCard]:
        """Return saved articles, last saved first; leaves out those no longer on the device."""
        return self._stores.news.cards([one.news_id for one in self._stores.feedback.reactions("save")])

    def unwanted(self) -> list[NewsCard]:
        """Return articles the reader wants less of, newest reaction first.

        Leaves out those no longer here.
        """
        return self._stores.news.cards([one.news_id for one in self._stores.feedback.reactions("less")])

    def history(self, query: str = "", page: int = 1) -> HistoryPage:
        """Return clicks, newest first: all, or those whose card has every word of `query`."""
        return history_page(self._stores, query, page)

    def delete_click(self, click_id: int) -> bool:
        """Delete one click permanently; False if there was none.

        A report made from it is still sent until the next one is due.
        """
        news_id = self._stores.clicks.news_of(click_id)
        with self._parts.copies.deleting():
            deleted = self._stores.clicks.delete(click_id)
            if news_id is not None:
                self._stores.searches.forget_opened([news_id])
                self._serving.forget_clicks([news_id])
        self._parts.trainer.forget_unsent()
        self._stores.fold()
        return deleted

    def search(self, text: str, page: int = 1, *, hidden: bool = False) -> SearchResults:
        """Return articles on this device with every word of `text`, best first; sends no request.

        hidden: also those that a mute rule hides.
        """
        return self._whole_pool.search(text, page, hidden=hidden)

    def save_search(self, words: str) -> SavedSearch:
        """Save a search.

        Raises ValueError for a blank or overlong text, or if fifty are already saved.
        """
        saved = self._stores.searches.save(words, self._clock())
        self._serving.changed()
        return saved

    def delete_search(self, search_id: int) -> bool:
        """Delete a saved search permanently; False if there was none.

        A report made with it is still sent until the next one is due.
        """
        with self._parts.copies.deleting():
            deleted = self._stores.searches.delete(search_id)
        self._parts.trainer.forget_unsent()
        self._stores.fold()
        self._serving.changed()
        return deleted

    def searches(self) -> SearchesView:
        """Return saved searches and followed topics, and what they are used for.

        Each has the number of its stories on this device.
        """
        return searches_view(self._stores, self._parts.policy.settings, self._whole_pool.hits)


class ReaderInterests:
    """The reader's interests, and what the reader follows, blocks or picks."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._stores, self._serving, self._clock = parts, parts.stores, parts.serving, parts.clock

    def clusters(self) -> tuple[InterestCluster, ...]:
        """Return the reader's interests, heaviest first. Raises NoRelease."""
        return interest_cards(self._serving.profile(), self._parts.names.kept())

    def rename(self, key: int, name: str) -> None:
        """Name the interest that contains click `key`; blank restores its label.

        Raises ValueError if too long.
        """
        self._parts.names.name([click.card.id for click in self._interest(key)], name)
        self._serving.changed()

    def mute(self, key: int, muted: bool) -> None:
        """Exclude an interest from feed and reports, or include it again.

        The next report is drawn again.
        """
        with self._parts.choosing():
            self._parts.names.mute([click.card.id for click in self._interest(key)], muted)
        self._stores.report_memo.clear()
        self._serving.changed()

    def forget(self, key: int) -> None:
        """Delete the clicks of an interest permanently; the next report is drawn again."""
        news_ids = {click.card.id for click in self._interest(key)}
        with self._parts.copies.deleting():
            self._stores.clicks.delete_news(news_ids)
            self._stores.searches.forget_opened(sorted(news_ids))
            self._parts.names.forget(news_ids)
            self._serving.forget_clicks(news_ids)
            self._stores.report_memo.clear()
        self._parts.trainer.forget_unsent()
        self._stores.fold()

    def stance(self, kind: StanceKind, name: str, stance: Stance | None) -> None:
        """Follow or block a topic, section or publisher; None undoes it."""
        with self._parts.copies.deleting():
            self._stores.stances.set(kind, name, stance, self._clock())
        self._stores.fold()
        self._serving.changed()

    def wants_rare_first(self) -> bool:
        """Return whether stories of rare publishers are ranked higher."""
        return self._serving.feed_context.rare.on()

    def rare_first(self, wanted: bool) -> None:
        """Switch on or off whether stories of rare publishers are ranked higher."""
        with self._parts.choosing():
            self._stores.preferences.set(RARE_FIRST, wanted)
        self._serving.changed()

    def stances(self) -> dict[tuple[str, str], str]:
        """Return 'follow' or 'block' by (kind, name)."""
        return self._stores.stances.all()

    def choose_sections(self, names: tuple[str, ...]) -> None:
        """Store the sections picked at the first visit (perhaps none) on this device.

        A new page is then offered.
        """
        self._stores.preferences.set(CHOSEN_SECTIONS, sorted(set(names)))
        self._serving.changed()

    def _interest(self, key: int) -> tuple[ClickedNews, ...]:
        return clicks_of(self._serving.profile(), key)


class ReaderPrivacy:
    """What left the device, the switches that control it, and the reader's data as a whole."""

    def __init__(self, parts: Parts, settings: DeviceSettings, lists: HeldLists) -> None:
        self._parts, self._stores, self._serving = parts, parts.stores, parts.serving
        self._clock, self._settings, self._lists = parts.clock, settings, lists

    def overview(self, page: int = 1, shown: ShownTraffic | None = None) -> PrivacyView:
        """Return the privacy page: what left this device, what it could reveal, and the switches.

        page counts pages of the log from 1. shown: 'concerning' or 'all'; by default what concerns the reader, or
        everything if nothing does.
        """
        models = self._serving.loaded()
        return privacy_view(
            self._stores,
            self._parts.policy,
            self._parts.ledger,
            models.manifest if models else None,
            self._serving.profile().names if models else (),
            frozenset(self._stores.preferences.get(PRIVACY_CHANGES) or {}),
            page,
            shown,
            self._stores.releases.trusted_key(self._settings.pinned_key),
        )

    def traffic(self, entry_id: int) -> TrafficDetail | None:
        """Return one request with all its bytes, or None if it isn't in the log."""
        entry = self._stores.byte_log.entry(entry_id)
        return None if entry is None else traffic_view(self._stores, entry)

    def polls(self, oldest_id: int, newest_id: int, page: int = 1) -> RequestGroup | None:
        """Return a page of the requests behind one line of the log.

        None if they are no longer in it.
        """
        return request_group_page(self._stores, oldest_id, newest_id, page)

    def change(self, **changes: Any) -> PrivacySettings:
        """Change and store switches.

        Changing the limit of a report's cost, or whether searches influence it, makes the next report a new draw.
        Raises pydantic's ValidationError, which names the field and its limit.
        """
        before = self._parts.policy.own
        settings = before.with_overrides(changes)
        if (settings.epsilon_per_report, settings.searches_in_reports) != (
            before.epsilon_per_report,
            before.searches_in_reports,
        ):
            self._stores.report_memo.clear()
        kept = self._stores.preferences.get(PRIVACY_CHANGES) or {}
        with self._parts.choosing():
            self._parts.copies.allow(Limits.of(Ceilings.of(settings)))
            self._stores.preferences.set(PRIVACY_CHANGES, kept | {name: getattr(settings, name) for name in changes})
            self._parts.policy.own = settings
        self._serving.changed()
        return settings

    def export(self) -> dict[str, Any]:
        """Return everything this device stores."""
        views = {"searches": self._stores.search_database.known()}
        return export_all(self._stores.database, views, self._settings.profile, self._clock())

    def erase(self) -> None:
        """Delete everything about the reader except the privacy and picture switches.

        The switches are kept so that what is switched off stays off. The ledger's totals, the releases (see
        Database.erase) and today's counts of messages without cost are kept, too. Copies, and damaged databases kept
        aside, are deleted.
        """
        switches, left = self._stores.preferences.get(PRIVACY_CHANGES), left_so_far(self._stores, self._parts.ledger)
        with self._parts.copies.deleting(), self._serving.erasing(), self._lists.still():
            self._parts.copies.erase()
            stay = {name: self._stores.preferences.get(name) for name in (TAKEN_OVER, PICTURES_HIDDEN)}
            self._stores.erase({PRIVACY_CHANGES: switches, LEFT_BEFORE_ERASE: left} | stay)
            self._parts.viewing.forget()
            self._lists.forget()
            self._parts.uplink.forget()
            forget_names()


class Device:
    """One reader's device. Thread-safe. Raises DeviceErrors, each with a one-sentence message."""

    def __init__(self, settings: DeviceSettings, parts: Parts) -> None:
        self.settings, self.parts, self.alerts = settings, parts, parts.alerts
        self._stores, self.own_server = parts.stores, parts.own_server
        self.lists = HeldLists(parts.stores, settings.feed.page_hours, parts.clock)
        self.whole_pool = WholePool(parts.stores, parts.serving, self.lists, parts.clock)
        known = self.own_server.known if self.own_server is not None else tuple
        self.feeds = OwnFeeds(parts.stores, known, parts.clock)
        self.muting = Muting(parts.stores.mute_rules, parts.clock)
        self.reading = Reading(parts, settings.feed, lambda: self.first_sync())
        self.library = ReaderLibrary(parts, self.whole_pool)
        self.interests = ReaderInterests(parts)
        self.privacy = ReaderPrivacy(parts, settings, self.lists)
        self.moving = Moving(
            parts.stores, parts.policy, parts.ledger, parts.names, parts.copies, self.privacy.change,
            parts.serving.changed, keeps_switches=settings.own_feeds,
        )  # fmt: skip

    def training(self) -> TrainingView:
        """Return the training page from the last background check; sends no request."""
        parts, paused = self.parts, self.training_paused()
        return training_view(parts.trainer, self._stores, self.release(), parts.policy.own, parts.ledger, paused=paused)

    def pause_training(self, paused: bool) -> None:
        """Pause or resume training; the choice is stored."""
        with self.parts.choosing():
            self._stores.preferences.set(TRAINING_PAUSED, paused)

    def training_paused(self) -> bool:
        """Return whether the reader has paused training."""
        return bool(self._stores.preferences.get(TRAINING_PAUSED))

    def latency(self) -> LatencyView:
        """Return the latency page of the last 200 feeds."""
        return latest(self._stores.timings)

    def status(self) -> StatusView:
        """Return the figures that every page shows."""
        settings, parts = self.settings, self.parts
        lost = parts.watch is not None and parts.watch.lost
        return status_view(
            settings, self._stores, parts.policy, parts.ledger, parts.serving, parts.syncing, self.alerts, lost=lost
        )

    def release(self) -> Release | None:
        """Return the release in use, or None before the first sync."""
        try:
            return current_release(self._stores.releases)
        except NoRelease:
            return None

    def sync(self) -> bool:
        """Run one sync step, then fetch pictures; return True if the release changed.

        Raises DeviceError.
        """
        with self.alerts.of("sync"):
            if not self._can_rank():
                return False
            try:
                swapped = self.parts.syncing.step()
            finally:  # the key may have changed even if its release was refused
                self.parts.copies.trust(self._stores.releases.trust())
        self.muting.catch_up(JUDGED_A_STEP)
        self.parts.syncing.take_pictures()
        return swapped

    def first_sync(self) -> None:
        """Run the first sync step of this run, unless it was done. Raises DeviceError."""
        with self.alerts.of("sync"):
            if not self._can_rank():
                return
            try:
                ran = self.parts.syncing.first()
            finally:
                self.parts.copies.trust(self._stores.releases.trust())
        if ran:
            self.parts.syncing.take_pictures()

    def _can_rank(self) -> bool:
        """Fetch the feed list from the reader's own server; return whether that server can rank.

        True for any other server, and for an own server that can't be reached: the sync that follows reports that.
        """
        if self.own_server is None:
            return True
        try:
            return self.own_server.step()
        except BackendUnreachable:
            return True

    def recall_step(self) -> float | None:
        """Run one background request for candidates, independent of the reader's actions.

        Returns how many seconds the server asks to wait, or None. Raises NoRelease or ReleaseRefused.
        """
        return self.parts.recall_step.step()

    def train_step(self) -> Outcome:
        """Try once to take part in a round, in the background.

        Raises if this device or the release is at fault.
        """
        with self.alerts.of("training"):
            return self.parts.trainer.step()

    def prefetch_step(self) -> bool:
        """Fetch the texts of one returned list; False if none waits.

        For programs that don't run `app`'s threads.
        """
        with self.alerts.of("texts"):
            return self.parts.bodies.step()

    def copy_step(self) -> bool:
        """Copy databases whose copy is missing or a day old; True if one was made.

        Raises StoreBroken.
        """
        with self.alerts.of("copy"):
            return self.parts.copies.step()

    def damage(self) -> StoreDamaged | None:
        """Check every page of this device's databases; return the damage found, or None."""
        try:
            self._stores.check()
        except StoreDamaged as damaged:
            return damaged
        return None

    def close(self) -> None:
        """Close connections and the database, and release the profile.

        Stop the background threads first.
        """
        self.parts.uplink.client.close()
        if self.own_server is not None:
            self.own_server.close()
        self._stores.close()
        self.parts.lock.release()
