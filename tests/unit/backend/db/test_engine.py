"""Oracle: what SQLite and PostgreSQL themselves report, and Alembic's comparison of tables with migrations."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, insert, select, text
from sqlalchemy.exc import IntegrityError, StatementError

import backend.db
import backend.db.engine as db_engine
from backend.db.advisory_lock import advisory_lock
from backend.db.diagram import DOCUMENT, diagram, redrawn
from backend.db.engine import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseTooNew,
    DatabaseTooOld,
    DatabaseUnreachable,
    DatabaseUnsupported,
    in_words,
    migrate,
    open_engine,
    reading,
    scripts,
    writing,
)
from backend.db.statements import chunks
from backend.db.tables import Base, BodyRow, FeedRow, IngestRow, PoolVersionRow, all_tables
from backend.errors import DiskFull
from backend.news.ingest_runs import note_run
from backend.news.item import IngestReport
from backend.server.problems import problem_response
from tests.doubles.migrated import migrated, to_revision


@pytest.fixture
def own(database_url: str) -> Iterator[Engine]:
    """A migrated database whose tables the test may change: `engine` is used again."""
    engine = migrated(database_url)
    yield engine
    engine.dispose()


def feed(url: str, at: datetime) -> dict[str, object]:
    return {"key": url, "url": url, "etag": None, "last_modified": None, "fetched_at": at, "added_at": at, "due_at": at}


def test_migrations_build_exactly_the_declared_tables(engine: Engine) -> None:
    with reading(engine) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, all_tables()) == []


def test_migrating_twice_changes_nothing(database_url: str) -> None:
    assert migrate(database_url) == migrate(database_url)


def test_concurrent_connections_can_all_open_a_new_file(tmp_path: Path) -> None:
    """Regression: SQLite answered some of these with "database is locked": 23 of 1,600, without waiting."""
    opened = []

    def open_one(url: str, together: threading.Barrier) -> None:
        engine = open_engine(url)
        together.wait(60)
        with engine.connect() as connection:
            opened.append(connection.exec_driver_sql("PRAGMA journal_mode").scalar())
        engine.dispose()

    for number in range(60):
        asked = (f"sqlite:///{tmp_path / str(number)}.db", threading.Barrier(4))
        threads = [threading.Thread(target=open_one, args=asked) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert opened == ["wal"] * 240


def test_two_concurrent_migrations_both_succeed(database_url: str) -> None:
    reached: list[str] = []
    threads = [threading.Thread(target=lambda: reached.append(migrate(database_url))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reached) == 2
    assert reached[0] == reached[1]


def test_failed_migration_leaves_no_table(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def upgrade_then_fail(config: Config, revision: str) -> None:
        upgrade(config, revision)
        raise RuntimeError("power cut")

    upgrade = command.upgrade
    monkeypatch.setattr(command, "upgrade", upgrade_then_fail)
    with pytest.raises(RuntimeError, match="power cut"):
        migrate(database_url)
    engine = open_engine(database_url)
    with reading(engine) as connection:
        assert MigrationContext.configure(connection).get_current_revision() is None
    engine.dispose()
    monkeypatch.undo()
    migrate(database_url)


@pytest.mark.parametrize(
    ("revision", "refused", "said"),
    [
        (
            "0999_time_travel",
            DatabaseTooNew,
            "'0999_time_travel' of a newer Ownfeed.* up to '0001_first_schema'",
        ),
        ("add_names_of_running_sums", DatabaseTooOld, "of an Ownfeed before 0.2.0.*name an empty data_dir"),
    ],
)
def test_database_of_another_series_is_refused_unchanged(
    own: Engine, revision: str, refused: type[Exception], said: str
) -> None:
    with writing(own) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    with pytest.raises(refused, match=said):
        migrate(own)
    with reading(own) as connection:
        assert MigrationContext.configure(connection).get_current_revision() == revision


def test_next_migration_keeps_the_rows_of_the_first_schema(
    own: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writing(own) as connection:
        connection.execute(insert(FeedRow).values(feed("https://kept.example/", datetime.now(UTC))))
    newer = tmp_path / "alembic"
    shutil.copytree(scripts(), newer)
    (newer / "versions" / "0002_toy.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n\n"
        "revision, down_revision = '0002_toy', '0001_first_schema'\n\n\n"
        "def upgrade():\n"
        "    with op.batch_alter_table('feeds') as feeds:\n"
        "        feeds.add_column(sa.Column('colour', sa.String(8), nullable=False, server_default='blue'))\n"
    )
    monkeypatch.setattr(db_engine, "scripts", lambda: newer)
    assert migrate(own) == "0002_toy"
    with reading(own) as connection:
        found = connection.execute(text("SELECT url, colour FROM feeds")).all()
    assert found == [("https://kept.example/", "blue")]
    monkeypatch.undo()
    with pytest.raises(DatabaseTooNew, match="0002_toy"):
        migrate(own)


def test_downgrading_removes_every_table(own: Engine) -> None:
    with writing(own) as connection:
        to_revision(connection, "base", back=True)
    with reading(own) as connection:
        assert connection.dialect.get_table_names(connection) == ["alembic_version"]


def test_migration_scripts_are_found_inside_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "backend" / "db"
    installed.mkdir(parents=True)
    shutil.copytree(scripts(), installed / "alembic")
    monkeypatch.setattr(db_engine, "files", lambda _package: installed)
    assert scripts() == installed / "alembic"
    assert migrate(f"sqlite:///{tmp_path / 'pool.db'}")
    shutil.rmtree(installed / "alembic")
    with pytest.raises(FileNotFoundError, match="No Alembic scripts"):
        scripts()


def test_developer_can_run_alembic_by_hand(tmp_path: Path) -> None:
    root = Path(backend.db.__path__[0]).parents[1]
    if not (root / "alembic.ini").is_file():
        pytest.skip("alembic.ini belongs to a checkout")
    url = f"sqlite:///{tmp_path / 'pool.db'}"
    command = [sys.executable, "-m", "alembic", "upgrade", "head"]
    environment = {"OWNFEED_BACKEND_DATABASE_URL": url, "PYTHONPATH": str(root)}
    subprocess.run(command, check=True, cwd=root, env=environment, capture_output=True)
    engine = open_engine(url)
    with reading(engine) as connection:
        assert connection.execute(select(PoolVersionRow.version)).scalar_one() == 0
    engine.dispose()


def test_sqlite_uses_wal_foreign_keys_and_a_busy_timeout(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'pool.db'}")
    with reading(engine) as connection:
        values = [
            connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        ]
    engine.dispose()
    assert values == ["wal", 1, db_engine.BUSY_TIMEOUT_MS]


def test_row_referencing_a_missing_article_is_refused(engine: Engine) -> None:
    with pytest.raises(IntegrityError), writing(engine) as connection:
        connection.execute(insert(BodyRow), {"news": 7, "body": "text"})


def test_exception_rolls_back_the_whole_write(engine: Engine) -> None:
    first = feed("https://example.org/a", datetime.now(UTC))
    with pytest.raises(IntegrityError), writing(engine) as connection:
        connection.execute(insert(FeedRow), [first, feed("https://example.org/b", datetime.now(UTC)), first])
    with reading(engine) as connection:
        assert connection.execute(select(FeedRow.url)).all() == []


def test_reader_sees_a_snapshot_while_a_writer_commits(engine: Engine) -> None:
    with reading(engine) as reader:
        assert reader.execute(select(FeedRow.url)).all() == []
        with writing(engine) as writer:
            writer.execute(insert(FeedRow), feed("https://example.org/a", datetime.now(UTC)))
        assert reader.execute(select(FeedRow.url)).all() == []
    with reading(engine) as reader:
        assert len(reader.execute(select(FeedRow.url)).all()) == 1


def test_times_are_returned_in_utc(engine: Engine) -> None:
    tokyo = datetime(2026, 11, 20, 8, 30, 0, 123456, timezone(timedelta(hours=9)))
    with writing(engine) as connection:
        connection.execute(insert(FeedRow), feed("https://example.org/a", tokyo))
    with reading(engine) as connection:
        found = connection.execute(select(FeedRow.fetched_at)).scalar_one()
    assert found == tokyo
    assert found.tzinfo is UTC


def test_time_without_a_zone_is_refused(engine: Engine) -> None:
    naive = datetime(2026, 11, 20)  # noqa: DTZ001
    with pytest.raises(StatementError, match="needs a time zone"), writing(engine) as connection:
        connection.execute(insert(FeedRow), feed("https://example.org/a", naive))


@pytest.mark.parametrize(
    "url",
    [
        "mysql://localhost/news",
        "pool.db",
        "",
        "sqlite://",
        "sqlite:///",
        "postgresql://news:hidden@localhost:port/news",
    ],
)
def test_unsupported_database_is_named_in_the_error(url: str) -> None:
    """An in-memory database too, which would be lost with the process."""
    with pytest.raises(DatabaseUnsupported, match="neither sqlite:///path nor postgresql://") as refused:
        open_engine(url)
    assert "hidden" not in str(refused.value)


def test_unopenable_database_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnreachable, match="can't be opened: unable to open database file"):
        migrate(f"sqlite:///{tmp_path / 'missing' / 'pool.db'}")


def test_unreachable_postgresql_is_reported_without_the_password() -> None:
    with pytest.raises(DatabaseUnreachable, match="can't be opened") as refusal:
        migrate("postgresql://reader:secret@127.0.0.1:9/news")
    assert "secret" not in str(refusal.value)


@pytest.mark.postgres
def test_postgresql_lost_in_a_transaction_is_reported_and_reconnected(postgres_url: str) -> None:
    engine = open_engine(postgres_url)
    ended = text("SELECT pg_terminate_backend(pg_backend_pid())")
    for within in (reading, writing):
        with pytest.raises(DatabaseUnreachable, match="terminating connection"), within(engine) as connection:
            connection.execute(ended)
        with within(engine) as connection:
            assert connection.execute(text("SELECT 1")).scalar_one() == 1
    with advisory_lock(engine, "rounds") as mine, engine.connect() as other:
        assert mine
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname"
        other.execute(text(f"{others} = current_database()"))
    with advisory_lock(engine, "rounds") as again:
        assert again, "it went with its connection"
    engine.dispose()


def test_full_database_is_reported_and_rolled_back(tmp_path: Path) -> None:
    engine = migrated(f"sqlite:///{tmp_path / 'pool.db'}")
    at = datetime(2026, 11, 20, tzinfo=UTC)
    feeds = [feed(f"https://example.org/{number}/{'x' * 400}", at) for number in range(200)]

    def fill() -> None:
        with writing(engine) as connection:
            connection.execute(text("PRAGMA max_page_count = 1"))  # of as many pages as there are
            connection.execute(insert(FeedRow), feeds)

    with pytest.raises(DiskFull, match="full"):
        fill()
    with reading(engine) as connection:
        assert connection.execute(select(FeedRow.url)).all() == []
    engine.dispose()


def test_read_only_database_is_reported(tmp_path: Path) -> None:
    engine = migrated(f"sqlite:///{tmp_path / 'pool.db'}")
    with reading(engine) as connection:
        connection.execute(text("PRAGMA query_only = ON"))  # as an account that may not write it finds it
    with pytest.raises(DatabaseUnreachable, match="readonly"), writing(engine) as connection:
        connection.execute(insert(FeedRow), feed("https://example.org/", datetime(2026, 11, 20, tzinfo=UTC)))
    engine.dispose()


def test_sqlite_disk_errors_include_their_extended_code() -> None:
    no_room = sqlite3.OperationalError("disk I/O error")
    no_room.sqlite_errorcode = sqlite3.SQLITE_IOERR | 19 << 8
    no_room.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"  # the log's index can't grow
    assert in_words(no_room) == "disk I/O error (SQLITE_IOERR_SHMSIZE); the disk is full or failing"
    assert in_words(sqlite3.OperationalError("database is locked")) == "database is locked"


@pytest.mark.parametrize(
    ("table", "change"),
    [(FeedRow, "added_at = '2026-11-20 12:0p:00'"), (FeedRow, "added_at = 7"),
     (FeedRow, "section = CAST(x'ff' AS TEXT)"), (IngestRow, "rejections = '{]'")],
)  # fmt: skip
def test_unexpected_stored_value_is_reported_as_damage(tmp_path: Path, table: type[Base], change: str) -> None:
    engine = migrated(f"sqlite:///{tmp_path / 'pool.db'}")
    at = datetime(2026, 11, 20, tzinfo=UTC)
    with writing(engine) as connection:
        connection.execute(insert(FeedRow), feed("https://example.org/", at))
        note_run(connection, "a source", IngestReport(), None, finished_at=at)
        connection.execute(text(f"UPDATE {table.__tablename__} SET {change}"))
    with pytest.raises(DatabaseDamaged, match=r"pool\.db is damaged: .*Put a backup back"), reading(engine) as one:
        one.execute(select(table)).all()
    engine.dispose()


def test_documented_tables_match_the_schema() -> None:
    drawn = DOCUMENT.read_text(encoding="utf-8")
    assert redrawn(drawn, all_tables()) == drawn, "run python -m backend.db.diagram"
    assert set(re.findall(r"^    (\w+) \{$", diagram(all_tables()), re.MULTILINE)) == set(all_tables().tables)


def test_chunks_contain_every_item_in_order() -> None:
    assert [*chunks(range(7), 3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [*chunks([], 3)] == []


def test_thread_without_a_free_connection_is_asked_to_retry_later(database_url: str) -> None:
    """Regression: SQLAlchemy's own TimeoutError became a 500, after half a minute."""
    migrate(database_url)
    engine = open_engine(database_url, connections=1, wait_sec=0.01)
    with reading(engine):
        with pytest.raises(DatabaseBusy) as refused, writing(engine):
            pass
        if engine.dialect.name == "postgresql":
            with pytest.raises(DatabaseBusy), advisory_lock(engine, "work"):
                pass
    assert (problem_response(refused.value).status_code, refused.value.retry_after_sec) == (503, 5)
    with writing(engine):
        pass
    engine.dispose()
