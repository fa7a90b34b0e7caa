"""All that one device keeps: the reading view's database, and the store of the other view beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from device_app.errors import StoreDamaged
from device_app.store.byte_log import ByteLog
from device_app.store.clicks import Clicks
from device_app.store.count_log import CountLog
from device_app.store.database import PAGE_CACHE_KIB, Database, Remedy, no_remedy
from device_app.store.default_list import DefaultListStore, PulledShards
from device_app.store.drawn_reports import DrawnReports
from device_app.store.feeds import FeedStore
from device_app.store.impressions import ImpressionStore
from device_app.store.integrity import unreadable_row
from device_app.store.late_database import LateDatabase
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.moved_searches import MovedSearches
from device_app.store.news import NewsStore
from device_app.store.opinions import Feedback, Stances
from device_app.store.outbox import Outbox
from device_app.store.participations import Participations, ViewLog
from device_app.store.pictures import PictureStore
from device_app.store.pool_codes import PoolStore
from device_app.store.pool_index import PoolIndex
from device_app.store.popularity import PopularityStore
from device_app.store.preferences import Preferences
from device_app.store.releases import InstalledReleases
from device_app.store.report_memo import ReportMemo
from device_app.store.search_index import SearchIndex
from device_app.store.searches import SEARCH_MIGRATIONS, Searches
from device_app.store.timings import TimingStore


def searches_of(database: Path) -> Path:
    """Where the store of the other view lies, beside a device's database."""
    return database.parent / "views" / "searches.sqlite"


class DeviceStores:
    """Opens the database at `path` and every store on it. Raises StoreBroken.

    Saved searches, and what is followed or blocked, are a view of their own, with a file of its own.

    blob_folder may be shared by the devices of a fleet; by default it lies beside the database. remedies: for each file
    what can be done when it is found damaged. page_cache_kib: as `Database` has it.
    """

    def __init__(
        self,
        path: Path,
        blob_folder: Path | None = None,
        remedies: Callable[[Path], Remedy] = lambda _: no_remedy,
        page_cache_kib: int = PAGE_CACHE_KIB,
    ) -> None:
        self.database = Database(path, remedy=remedies(path), page_cache_kib=page_cache_kib)
        self.clicks = Clicks(self.database)
        self.impressions = ImpressionStore(self.database)
        self.news = NewsStore(self.database)
        self.feedback = Feedback(self.database)
        searches = searches_of(path)
        self.search_database = LateDatabase(searches, SEARCH_MIGRATIONS, remedies(searches))
        self.searches = Searches(self.search_database)
        self.stances = Stances(self.search_database)
        self.stances.take_over(self.database)
        self.moved_searches = MovedSearches(self.database, self.search_database)
        self.moved_searches.finish()
        self.search_index = SearchIndex(self.database)
        self.ledger_entries = LedgerRepository(self.database)
        self.report_memo = ReportMemo(self.database)
        self.drawn_reports = DrawnReports(self.database)
        self.pool = PoolStore(self.database)
        self.pool_index = PoolIndex(self.database, self.pool)
        self.popularity = PopularityStore(self.database)
        self.counted = CountLog(self.database)
        self.outbox = Outbox(self.database)
        self.byte_log = ByteLog(self.database)
        self.timings = TimingStore(self.database)
        self.releases = InstalledReleases(self.database, blob_folder)
        self.default_list = DefaultListStore(self.database)
        self.pulled_shards = PulledShards(self.database)
        self.feeds = FeedStore(self.database)
        self.participations = Participations(self.database)
        self.view_log = ViewLog(self.database)
        self.preferences = Preferences(self.database)
        self.pictures = PictureStore(self.database, self.preferences)

    def check(self) -> None:
        """Look through every page of both files, and read what no backend gives again. Raises StoreDamaged."""
        self.database.check()
        self.check_rows()
        searches = self.search_database.known()
        if searches is not None:
            searches.check()

    def check_rows(self) -> None:
        """Read what no backend gives again: the release, choices, what was spent. Raises StoreDamaged."""
        if what := unreadable_row(self.database.rows):
            raise StoreDamaged(self.database.path, f"a part of it is damaged ({what})", self.database.remedy())

    def erase(self, keep: Mapping[str, Any] | None = None) -> None:
        """Delete all that either view knows of its reader; see `Database.erase`. keep: preferences that stand after."""

        def keep_preferences() -> None:
            for name, value in (keep or {}).items():
                self.preferences.set(name, value)

        self.search_database.erase()
        self.database.erase(keep_preferences)

    def fold(self) -> None:
        """Something was deleted: no byte of it stays in what the stores have written ahead; see `Database.fold`."""
        self.database.fold()
        self.search_database.fold()

    def close(self) -> None:
        """Let go of both files."""
        self.search_database.close()
        self.database.close()
