"""An operator's commands over one folder: a first start, articles, releases, another key, backups, and a restore.

Oracle: what was reported to the operator as done (`Said`), against the database, the releases' own signatures and
hashes, and a start over the folder.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import httpx
import numpy as np
from sqlalchemy import Engine

from backend.composition import build_services
from backend.db.engine import migrate, open_engine
from backend.errors import OwnfeedError
from backend.news.feed_refresh import follow
from backend.news.followed_feeds import FollowedFeeds
from backend.news.ingest import ingest
from backend.news.pool import NEWS_LIFETIME, NewsPool
from backend.operations.backup import BackupRefused, back_up, check_backup, restore
from backend.releases.blobs import ReleaseDraft, blob_refs
from backend.releases.rotation import key_history, rotate_key
from backend.releases.store import ReleaseStore
from backend.settings import BackendSettings
from protocol.ids import release_number
from tests.doubles.news import NOW
from tests.doubles.recall_world import DIMENSIONS, items, recall_draft
from tests.qa.faults.points import PointKind
from tests.qa.faults.reader import SAID, ReportedActions, whole_database
from tests.qa.faults.servers import settings_of

FEED, IN_FEED, IN_FILE, A_BATCH = "https://courant.example/feed", 12, 60, 20
ENCODER = "test-encoder"
DATA, BACKUP, LOST = "data", "backup", "lost"
DATABASE, KEY = "ownfeed.sqlite", "signing.key"
LEFT = ".part"
FILE = items(IN_FILE, now=NOW)
NOT_EXPIRED, TAKEN_DOWN = 40, "n3"
EXPIRE_AT = FILE[NOT_EXPIRED].published_at + NEWS_LIFETIME


class OperatorWork:
    """The commands over one folder; a command that failed is given again."""

    kinds: tuple[PointKind, ...] = ("write",)

    def prepare(self, folder: Path) -> None:
        """Do nothing: the first start makes everything."""

    def run(self, folder: Path) -> None:
        """Run every command that hasn't succeeded yet."""
        said, settings = ReportedActions(folder / SAID, (OwnfeedError, OSError)), settings_of(folder / DATA, {})
        backup, lost = folder / BACKUP, folder / LOST

        def once(name: str, act: Callable[[Engine], object]) -> None:
            said.once(name, lambda: _with_engine(settings, act))

        said.once("start", lambda: build_services(settings).close())
        once("first release", lambda engine: _publish(engine, settings, first=True))
        once("feed", lambda engine: _followed(engine, "v1"))
        once("file", lambda engine: ingest(NewsPool(engine), FILE, source="file", batch_rows=A_BATCH))
        once("vectors", lambda engine: _with_vectors(NewsPool(engine)))
        once("feed again", lambda engine: _followed(engine, "v2"))
        once("take down", lambda engine: NewsPool(engine).take_down(TAKEN_DOWN))
        once("release", lambda engine: _publish(engine, settings))
        once("rotate", lambda engine: rotate_key(ReleaseStore.open(engine, settings)))
        said.once("backup", lambda: back_up(settings, backup))
        once("expire", lambda engine: NewsPool(engine).expire(EXPIRE_AT))
        once("release again", lambda engine: _publish(engine, settings))
        said.once("backup again", lambda: back_up(settings, backup))
        said.once("lose", lambda: _lose(settings.data_dir, lost))
        said.once("restore", lambda: restore(settings, backup))
        said.once("start again", lambda: build_services(settings).close())

    def check(self, folder: Path, *, killed: bool) -> None:
        """Raise AssertionError for what must not be."""
        said, backup = ReportedActions(folder / SAID), folder / BACKUP
        place = folder / (LOST if (folder / LOST).exists() and "done restore" not in said else DATA)
        if "done backup" in said:
            try:
                copy = check_backup(settings_of(place, {}), backup)
            except BackupRefused as refused:
                raise AssertionError(f"the backup was made, and is none: {refused}") from refused
            assert int((copy.newest_release or "r0")[1:]) >= (4 if "done backup again" in said else 3)
        if not (place / DATABASE).exists():
            assert killed, "the work has made no database"
            assert not any(each.startswith("done") for each in said.facts)
            return
        whole_database(place / DATABASE)
        looked_at = folder / "looked at"
        shutil.copytree(place, looked_at)
        try:
            _checked(settings_of(looked_at, {}), said)
        finally:
            shutil.rmtree(looked_at)
        if not killed:
            left = [each.name for each in folder.rglob(f"*{LEFT}") if not each.is_relative_to(folder / LOST)]
            assert not left, f"left unfinished: {left}"


def _checked(settings: BackendSettings, said: ReportedActions) -> None:
    """Check database and folder, and that a start succeeds on them."""
    if "done start" not in said:
        build_services(settings).close()
        return
    engine = open_engine(settings.database_url)
    try:
        store = ReleaseStore.open(engine, settings)
        history = store.history()
        numbers = [release_number(each.release) for each in history]
        # One that was noted in the chain's file and not published is a gap: devices may have seen it.
        assert numbers == sorted(set(numbers), reverse=True), numbers
        least = sum(f"done {each}" in said for each in ("first release", "release", "rotate", "release again"))
        assert len(history) >= least, "a release that was published is lost"
        for each in history:
            for ref in blob_refs(store.manifest(each.release)):
                store.read_blob(ref.sha256)
        if history:
            assert "done rotate" not in said or key_history(store).rotations, "the key's succession is lost"
        with closing(sqlite3.connect(settings.data_dir / DATABASE)) as own:
            titles = dict(own.execute("SELECT id, title FROM news"))
            vectors = own.execute("SELECT count(*) FROM vectors").fetchone()[0]
        _checked_news(titles, vectors, said)
        for feed in FollowedFeeds(engine).all():
            known = FollowedFeeds(engine).last(feed.url).etag
            # news come first, so that they may be newer than what the feed is said to have been: it is asked again then
            of_it = sum(title.rpartition(" ")[2] >= str(known) for title in titles.values() if " sails v" in title)
            assert known is None or of_it == IN_FEED, f"of a feed that is said to be taken {of_it} news are here"
    finally:
        engine.dispose()
    build_services(settings).close()


def _checked_news(titles: Mapping[str, str], vectors: int, said: ReportedActions) -> None:
    """Check the articles of the file, whose batches are complete or missing, and of the feed."""
    rows = {int(name[1:]) for name in titles if name[1:].isdecimal() and name.startswith("n")}
    if "begun expire" not in said:
        assert rows in ({*range(count)} for count in range(0, IN_FILE + 1, A_BATCH)), "a batch is half there"
    assert "done file" not in said or {*range(NOT_EXPIRED)} <= rows, "news that were taken are lost"
    assert "done expire" not in said or rows == {*range(NOT_EXPIRED)}, "what has expired is there"
    assert "done vectors" not in said or vectors >= NOT_EXPIRED - 1, "vectors are lost"
    assert "done take down" not in said or not titles[TAKEN_DOWN], "what was taken down is there"
    assert "done feed" not in said or len(titles) - len(rows) == IN_FEED, "news of the feed are lost"
    of_again = sum(title.endswith(" v2") for title in titles.values())
    assert "done feed again" not in said or of_again == IN_FEED, f"{of_again} news of the feed are as it has them"


def _with_engine(settings: BackendSettings, act: Callable[[Engine], object]) -> None:
    """Open the database as a command does, and bring it to its newest revision."""
    migrate(settings.database_url)
    engine = open_engine(settings.database_url)
    try:
        act(engine)
    finally:
        engine.dispose()


def _publish(engine: Engine, settings: BackendSettings, *, first: bool = False) -> None:
    store = ReleaseStore.open(engine, settings)
    current = store.current()
    if current is None or not first:
        store.commit(
            recall_draft(store, encoder=ENCODER) if first else ReleaseDraft.like(store.require_current()),
            note="for faults",
        )


def _followed(engine: Engine, version: str) -> None:
    words = "".join(
        f"<item><title>Ferry {number} sails {version}</title><guid>ferry-{number}</guid></item>"
        for number in range(IN_FEED)
    )
    content = f'<?xml version="1.0"?><rss version="2.0"><channel><title>Courant</title>{words}</channel></rss>'

    def answered(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"ETag": version}, stream=httpx.ByteStream(content.encode()))

    follow(NewsPool(engine), FollowedFeeds(engine), FEED, now=NOW, transport=httpx.MockTransport(answered))


def _with_vectors(pool: NewsPool) -> None:
    vectors = np.eye(IN_FILE, DIMENSIONS, dtype=np.float32)
    pool.store_vectors(ENCODER, [item.id for item in FILE], vectors)


def _lose(folder: Path, lost: Path) -> None:
    """Delete the folder except for its key, after renaming it, which on a full disk may fail at first."""
    if not lost.exists():
        folder.rename(lost)
    folder.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(lost / KEY, folder / KEY)
