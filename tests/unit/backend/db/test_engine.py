"""Oracle: what SQLite and PostgreSQL themselves report, and Alembic's comparison of tables with migrations."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
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
from backend.db.base import Base, all_tables
from backend.db.chunks import chunks
from backend.db.diagram import DOCUMENT, diagram, redrawn
from backend.db.engine import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseTooNew,
    DatabaseUnreachable,
    DatabaseUnsupported,
    in_words,
    migrate,
    open_engine,
    reading,
    reading_session,
    scripts,
    writing,
    writing_session,
)
from backend.db.tables import BodyRow, FeedRow, IngestRow, PoolVersionRow
from backend.db.tables_federation import QueuedRoundRow, ScheduleRow
from backend.errors import DiskFull
from backend.federation.rounds.scheduling import Schedule
from backend.federation.strategies.strategy import RoundRequest
from backend.news.ingest_runs import note_run
from backend.news.report import IngestReport
from backend.problems import problem_response
from tests.doubles.migrated import migrated, to_revision


def feed(url: str, at: datetime) -> dict[str, object]:
    return {"url": url, "etag": None, "last_modified": None, "fetched_at": at, "added_at": at, "due_at": at}


def test_the_migrations_build_exactly_the_declared_tables(engine: Engine) -> None:
    with reading(engine) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, all_tables()) == []


def test_migrating_twice_changes_nothing(database_url: str) -> None:
    assert migrate(database_url) == migrate(database_url)


def test_connections_that_open_a_new_file_at_once_all_do(tmp_path: Path) -> None:
    """SQLite answered some of these with "database is locked": 23 of 1,600, without waiting."""
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


def test_two_processes_that_migrate_at_once_both_succeed(database_url: str) -> None:
    reached: list[str] = []
    threads = [threading.Thread(target=lambda: reached.append(migrate(database_url))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reached) == 2
    assert reached[0] == reached[1]


def test_a_migration_that_fails_leaves_no_table(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_database_of_a_newer_version_is_refused_by_name(engine: Engine) -> None:
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'add_time_travel'"))
        connection.execute(text("DELETE FROM schema_readers WHERE revision = 'add_names_of_running_sums'"))
    both = "revision 'add_time_travel' of a newer Ownfeed.* up to 'add_names_of_running_sums'"
    with pytest.raises(DatabaseTooNew, match=both):
        migrate(engine)


def test_downgrading_removes_every_table(engine: Engine) -> None:
    with writing(engine) as connection:
        to_revision(connection, "base", back=True)
    with reading(engine) as connection:
        assert connection.dialect.get_table_names(connection) == ["alembic_version"]


def test_rounds_of_the_printed_recall_model_keep_what_they_were_under_its_new_name(engine: Engine) -> None:
    asked = RoundRequest("uni_fedrec", cohort=2, cohort_minimum=1, seconds=30.0)
    with writing(engine) as connection:
        to_revision(connection, "add_round_queue", back=True)
    with writing_session(engine) as session:
        session.add_all(
            [
                QueuedRoundRow(number=1, request=asked.to_json(), queued_at=datetime.now(UTC)),
                ScheduleRow(only=1, paused=False, schedule=Schedule(asked, every_minutes=30).to_json()),
            ]
        )
    migrate(engine)
    with reading_session(engine) as session:
        queued, scheduled = session.get(QueuedRoundRow, 1), session.get(ScheduleRow, 1)
        assert queued is not None
        assert scheduled is not None
        assert scheduled.schedule is not None
        called = [RoundRequest.from_json(queued.request), Schedule.from_json(scheduled.schedule).order]
    assert called == [replace(asked, system="uni_fedrec_as_printed")] * 2


def test_the_scripts_are_found_inside_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "backend" / "db"
    installed.mkdir(parents=True)
    shutil.copytree(scripts(), installed / "alembic")
    monkeypatch.setattr(db_engine, "files", lambda _package: installed)
    assert scripts() == installed / "alembic"
    assert migrate(f"sqlite:///{tmp_path / 'pool.db'}")
    shutil.rmtree(installed / "alembic")
    with pytest.raises(FileNotFoundError, match="No Alembic scripts"):
        scripts()


def test_a_developer_can_run_alembic_by_hand(tmp_path: Path) -> None:
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


def test_sqlite_runs_in_wal_with_foreign_keys_and_patience(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'pool.db'}")
    with reading(engine) as connection:
        values = [
            connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        ]
    engine.dispose()
    assert values == ["wal", 1, db_engine.BUSY_TIMEOUT_MS]


def test_a_row_that_points_at_no_news_is_refused(engine: Engine) -> None:
    with pytest.raises(IntegrityError), writing(engine) as connection:
        connection.execute(insert(BodyRow), {"news": 7, "body": "text"})


def test_an_exception_rolls_the_whole_write_back(engine: Engine) -> None:
    first = feed("https://example.org/a", datetime.now(UTC))
    with pytest.raises(IntegrityError), writing(engine) as connection:
        connection.execute(insert(FeedRow), [first, feed("https://example.org/b", datetime.now(UTC)), first])
    with reading(engine) as connection:
        assert connection.execute(select(FeedRow.url)).all() == []


def test_a_reader_sees_one_moment_while_a_writer_commits(engine: Engine) -> None:
    with reading(engine) as reader:
        assert reader.execute(select(FeedRow.url)).all() == []
        with writing(engine) as writer:
            writer.execute(insert(FeedRow), feed("https://example.org/a", datetime.now(UTC)))
        assert reader.execute(select(FeedRow.url)).all() == []
    with reading(engine) as reader:
        assert len(reader.execute(select(FeedRow.url)).all()) == 1


def test_times_come_back_in_utc_whatever_zone_they_went_in(engine: Engine) -> None:
    tokyo = datetime(2026, 11, 20, 8, 30, 0, 123456, timezone(timedelta(hours=9)))
    with writing(engine) as connection:
        connection.execute(insert(FeedRow), feed("https://example.org/a", tokyo))
    with reading(engine) as connection:
        found = connection.execute(select(FeedRow.fetched_at)).scalar_one()
    assert found == tokyo
    assert found.tzinfo is UTC


def test_a_time_without_a_zone_is_refused(engine: Engine) -> None:
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
def test_other_databases_are_refused_by_name(url: str) -> None:
    """One in memory too, which would be gone with the process."""
    with pytest.raises(DatabaseUnsupported, match="neither sqlite:///path nor postgresql://") as refused:
        open_engine(url)
    assert "hidden" not in str(refused.value)


def test_a_database_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnreachable, match="can't be opened: unable to open database file"):
        migrate(f"sqlite:///{tmp_path / 'missing' / 'pool.db'}")


def test_a_postgresql_that_does_not_answer_says_so_without_the_password() -> None:
    with pytest.raises(DatabaseUnreachable, match="can't be opened") as refusal:
        migrate("postgresql://reader:secret@127.0.0.1:9/news")
    assert "secret" not in str(refusal.value)


@pytest.mark.postgres
def test_a_postgresql_that_goes_away_within_a_transaction_says_so_and_is_there_again(postgres_url: str) -> None:
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


def test_a_database_without_room_says_so_and_keeps_nothing_of_what_was_written(tmp_path: Path) -> None:
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


def test_a_database_that_may_only_be_read_says_so(tmp_path: Path) -> None:
    engine = migrated(f"sqlite:///{tmp_path / 'pool.db'}")
    with reading(engine) as connection:
        connection.execute(text("PRAGMA query_only = ON"))  # as an account that may not write it finds it
    with pytest.raises(DatabaseUnreachable, match="readonly"), writing(engine) as connection:
        connection.execute(insert(FeedRow), feed("https://example.org/", datetime(2026, 11, 20, tzinfo=UTC)))
    engine.dispose()


def test_what_sqlite_leaves_out_of_an_error_of_the_disk_is_told() -> None:
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
def test_a_value_that_is_not_what_was_written_is_a_damaged_database(
    tmp_path: Path, table: type[Base], change: str
) -> None:
    engine = migrated(f"sqlite:///{tmp_path / 'pool.db'}")
    at = datetime(2026, 11, 20, tzinfo=UTC)
    with writing(engine) as connection:
        connection.execute(insert(FeedRow), feed("https://example.org/", at))
        note_run(connection, "a source", IngestReport(), None, finished_at=at)
        connection.execute(text(f"UPDATE {table.__tablename__} SET {change}"))
    with pytest.raises(DatabaseDamaged, match=r"pool\.db is damaged: .*Put a backup back"), reading(engine) as one:
        one.execute(select(table)).all()
    engine.dispose()


def test_the_document_shows_the_tables_as_they_are() -> None:
    drawn = DOCUMENT.read_text(encoding="utf-8")
    assert redrawn(drawn, all_tables()) == drawn, "run python -m backend.db.diagram"
    assert set(re.findall(r"^    (\w+) \{$", diagram(all_tables()), re.MULTILINE)) == set(all_tables().tables)


def test_chunks_lose_nothing() -> None:
    assert [*chunks(range(7), 3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [*chunks([], 3)] == []


def test_where_all_connections_are_in_use_a_thread_is_told_to_come_later(database_url: str) -> None:
    """SQLAlchemy's own TimeoutError was a 500, after half a minute."""
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
