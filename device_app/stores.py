"""All stores of one device: the reading view's database and the other view's store."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from device_app.errors import StoreDamaged
from device_app.store.articles import Articles, Streams
from device_app.store.byte_log import ByteLog, TimingStore
from device_app.store.clicks import Clicks
from device_app.store.database import PAGE_CACHE_KIB, Database, LazyDatabase, Remedy, no_remedy
from device_app.store.database_copy import unreadable_row
from device_app.store.default_list import DefaultListStore, PopularityStore, PulledShards
from device_app.store.exported import MovedSearches
from device_app.store.feeds import FeedStore
from device_app.store.impressions import ImpressionStore
from device_app.store.ledger_entries import LedgerRepository
from device_app.store.mute_rules import MuteRules
from device_app.store.news import NewsStore
from device_app.store.opinions import Feedback, Stances
from device_app.store.participations import CountLog, Outbox, Participations, ViewLog
from device_app.store.picture_store import PictureStore
from device_app.store.pool_codes import PoolIndex, PoolStore
from device_app.store.preferences import Preferences
from device_app.store.read_marks import ReadMarks
from device_app.store.releases import InstalledReleases
from device_app.store.report_memo import DrawnReports, ReportMemo
from device_app.store.searches import SEARCH_MIGRATIONS, Searches, SearchIndex


def searches_of(database: Path) -> Path:
    """Return the path of the other view's store, which is next to a device's database."""
    return database.parent / "views" / "searches.sqlite"


class DeviceStores:
    """Opens the database at `path` and every store on it. Raises StoreBroken.

    Saved searches, and what is followed or blocked, form a separate view with a file of its own. blob_folder may be
    shared by the devices of a fleet; by default it is beside the database. remedies: returns, for each file, what the
    reader can do if it is damaged. page_cache_kib: see `Database`.
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
        self.articles = Articles(self.database)
        self.read_marks = ReadMarks(self.database)
        self.streams = Streams(self.database)
        self.mute_rules = MuteRules(self.database)
        self.feedback = Feedback(self.database)
        searches = searches_of(path)
        self.search_database = LazyDatabase(searches, SEARCH_MIGRATIONS, remedies(searches))
        self.searches = Searches(self.search_database)
        self.stances = Stances(self.search_database)
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
        """Check every page of both files, and read the rows that no server can restore. Raises StoreDamaged."""
        self.database.check()
        self.check_rows()
        searches = self.search_database.known()
        if searches is not None:
            searches.check()

    def check_rows(self) -> None:
        """Read the rows that no server can restore: the release, choices, and the ledger.

        Raises StoreDamaged.
        """
        if what := unreadable_row(self.database.rows):
            raise StoreDamaged(self.database.path, f"a part of it is damaged ({what})", self.database.remedy())

    def erase(self, keep: Mapping[str, Any] | None = None) -> None:
        """Delete everything that either view knows about its reader; see `Database.erase`.

        keep: preferences that are stored again afterwards.
        """

        def keep_preferences() -> None:
            for name, value in (keep or {}).items():
                self.preferences.set(name, value)

        self.search_database.erase()
        self.database.erase(keep_preferences)

    def fold(self) -> None:
        """Remove deleted bytes from the stores' write-ahead logs; see `Database.fold`."""
        self.database.fold()
        self.search_database.fold()

    def close(self) -> None:
        """Close both files."""
        self.search_database.close()
        self.database.close()
