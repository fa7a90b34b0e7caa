"""The file under the store: migrations, kills, full and read-only disks."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from device_app.errors import StoreBroken
from device_app.store.clicks import Clicks
from device_app.store.database import MIGRATIONS, Database
from device_app.store.impressions import ImpressionStore
from device_app.store.ledger_entries import LedgerEntry, LedgerRepository
from device_app.store.preferences import Preferences
from device_app.store.report_memo import Memo, ReportMemo
from device_app.stores import DeviceStores
from tests.unit.device_app.store.conftest import MakeCard

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def charge(epsilon: float) -> LedgerEntry:
    return LedgerEntry(NOW, "reports", "basis_laplace", {"clip": 0.2}, epsilon, 0.0, "ab" * 32, "r1")


def test_new_database_has_every_migration_and_reopens_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "device.sqlite"
    Database(path).close()
    with sqlite3.connect(path) as raw:
        applied = {row[0] for row in raw.execute("SELECT migration_id FROM _yoyo_migration")}
    raw.close()
    assert applied == {file.stem for file in MIGRATIONS.glob("*.sql")}
    again = Database(path)
    assert again.row("PRAGMA journal_mode") == ("wal",)
    with again.transaction():
        assert again.row("PRAGMA synchronous") == (2,)
    again.close()


def test_database_of_a_newer_version_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "device.sqlite"
    Database(path).close()
    raw = sqlite3.connect(path)
    raw.execute("INSERT INTO _yoyo_migration VALUES ('f', '0999_from_the_future', '2027-01-01')")
    raw.commit()
    raw.close()
    before = path.read_bytes()
    with pytest.raises(StoreBroken, match="a newer version of Ownfeed wrote it \\(migration 0999_from_the_future;"):
        Database(path)
    assert path.read_bytes() == before


def test_database_of_0_1_0_is_refused_with_advice_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "device.sqlite"
    Database(path).close()
    raw = sqlite3.connect(path)
    raw.execute("UPDATE _yoyo_migration SET migration_id = '0001_reading'")
    raw.commit()
    raw.close()
    before = path.read_bytes()
    with pytest.raises(StoreBroken, match=r"before 0\.2\.0 wrote it.*move the profile's folder away"):
        Database(path)
    assert path.read_bytes() == before


def test_next_migration_keeps_the_rows_of_the_first_schema(tmp_path: Path) -> None:
    path = tmp_path / "device.sqlite"
    first = Database(path)
    Clicks(first).add("N1", "f1", NOW)
    first.close()
    newer = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, newer)
    (newer / "0002_toy.sql").write_text("ALTER TABLE click ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue';\n")
    migrated = Database(path, newer)
    assert migrated.rows("SELECT news_id, colour FROM click") == [("N1", "blue")]
    migrated.close()


def test_file_that_is_not_a_database_is_refused_plainly(tmp_path: Path) -> None:
    path = tmp_path / "device.sqlite"
    path.write_bytes(b"not a database at all, " * 200)
    with pytest.raises(StoreBroken, match="not a database"):
        Database(path)


@pytest.mark.parametrize("name", ["a b.sqlite", "a#b.sqlite", "a?b.sqlite", "a%20b.sqlite", "ü.sqlite"])
def test_any_path_the_system_allows_works(tmp_path: Path, name: str) -> None:
    database = Database(tmp_path / name)
    Preferences(database).set("x", 1)
    database.close()
    assert (tmp_path / name).stat().st_size > 0


def test_broken_migration_is_reported_and_rolled_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "migrations"
    broken.mkdir()
    (broken / "0001_half.sql").write_text("CREATE TABLE one (x INTEGER);\nCREATE TABLE one (x INTEGER);\n")
    monkeypatch.setattr("device_app.store.database.MIGRATIONS", broken)
    path = tmp_path / "device.sqlite"
    with pytest.raises(StoreBroken):
        Database(path)
    raw = sqlite3.connect(path)
    tables = {row[0] for row in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    raw.close()
    assert "one" not in tables


def test_two_threads_can_open_the_same_new_database(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def open_and_close() -> None:
        try:
            Database(tmp_path / "device.sqlite").close()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=open_and_close) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_consecutive_new_databases_are_equal_and_independent(tmp_path: Path, now: datetime) -> None:
    first, second = Database(tmp_path / "one" / "device.sqlite"), Database(tmp_path / "two" / "device.sqlite")
    Clicks(first).add("A", None, now)
    schema = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
    assert first.rows(schema) == second.rows(schema)
    assert Clicks(second).recent() == []
    first.close()
    again = Database(first.path)
    assert [click.news_id for click in Clicks(again).recent()] == ["A"]
    for each in (again, second):
        assert each.rows("PRAGMA integrity_check") == [("ok",)]
        assert each.row("PRAGMA journal_mode") == ("wal",)
        assert not list(each.path.parent.glob("*.part"))
        each.close()


def test_migrations_added_later_are_in_the_next_new_database(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_one.sql").write_text("CREATE TABLE one (x INTEGER);\n")
    Database(tmp_path / "first.sqlite", folder).close()
    (folder / "0002_two.sql").write_text("CREATE TABLE two (x INTEGER);\n")
    second = Database(tmp_path / "second.sqlite", folder)
    assert second.rows("SELECT name FROM sqlite_schema WHERE name IN ('one', 'two')") == [("one",), ("two",)]
    second.close()


@pytest.mark.parametrize("made_before", [False, True])
def test_interrupted_database_creation_is_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_before: bool
) -> None:
    monkeypatch.setattr("device_app.store.database._NEW", {})
    if made_before:
        Database(tmp_path / "other.sqlite").close()
    path = tmp_path / "profile" / "device.sqlite"
    with monkeypatch.context() as full:
        full.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(StoreBroken, match="No space left"):
            Database(path)
    assert not path.exists()
    Database(path).close()


def test_rows_cached_in_a_transaction_are_dropped_on_rollback(database: Database, now: datetime) -> None:
    impressions, memo = ImpressionStore(database), ReportMemo(database)
    impressions.record("f1", ["A", "B"], now)
    memo.keep(Memo("r1", b"{}", ((0.5,),), 1, now, "meaning", "code", "encoder"))
    assert (impressions.seen(now), memo.latest() is not None) == ({"A", "B"}, True)

    def cut_off() -> None:
        with database.transaction():
            impressions.record("f2", ["C"], now)
            memo.clear()
            assert (impressions.seen(now), memo.latest()) == ({"A", "B", "C"}, None)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cut_off()
    assert (impressions.seen(now), memo.latest() is not None) == ({"A", "B"}, True)
    database.erase()
    assert (impressions.seen(now), memo.latest()) == (set(), None)


def test_only_a_transaction_that_wrote_clears_caches_on_rollback(database: Database) -> None:
    """With a spent budget, each page begins a transaction that is refused; cached rows stay valid after it."""
    forgotten = []
    database.when_undone(lambda: forgotten.append(1))

    def refused(*, write: bool) -> None:
        with database.transaction():
            if write:
                LedgerRepository(database).append(charge(1.0))
            raise ZeroDivisionError

    for write, times in ((False, 0), (True, 1)):
        with pytest.raises(ZeroDivisionError):
            refused(write=write)
        assert len(forgotten) == times


def test_failed_transaction_leaves_nothing(database: Database) -> None:
    book = LedgerRepository(database)

    def append_then_fail() -> None:
        with database.transaction():
            book.append(charge(1.0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        append_then_fail()
    assert book.total("reports") == 0
    book.append(charge(2.0))
    assert book.total("reports") == 2


def test_transaction_is_synced_to_disk_and_a_quick_transaction_is_not(database: Database) -> None:
    for _ in range(2):
        with database.transaction(), database.transaction(), database.quick_transaction():
            assert database.row("PRAGMA synchronous") == (2,)
        with database.quick_transaction(), database.quick_transaction():
            assert database.row("PRAGMA synchronous") == (1,)
        with pytest.raises(ZeroDivisionError), database.transaction():
            _ = 1 / 0


def test_durable_write_in_a_quick_transaction_is_refused(database: Database) -> None:
    def charge_quickly() -> None:
        with database.quick_transaction():
            LedgerRepository(database).append(charge(1.0))

    with pytest.raises(RuntimeError, match="must reach the disk"):
        charge_quickly()
    assert LedgerRepository(database).total("reports") == 0
    LedgerRepository(database).append(charge(1.0))


def test_write_outside_a_transaction_is_refused(database: Database) -> None:
    with pytest.raises(RuntimeError, match="needs a transaction"):
        database.write("DELETE FROM click")


def test_full_disk_is_reported_and_loses_nothing(database: Database) -> None:
    # max_page_count makes SQLite itself answer "database or disk is full".
    clicks = Clicks(database)
    clicks.add("N0", "f", NOW)
    pages = database.number("PRAGMA page_count")
    database.row(f"PRAGMA max_page_count={pages}")

    def fill_the_disk() -> None:
        for number in range(10_000):
            clicks.add(f"N{number}" + "x" * 60, f"f{number}", NOW)

    with pytest.raises(StoreBroken, match="disk is full"):
        fill_the_disk()
    kept = clicks.count()
    assert kept >= 1
    database.row("PRAGMA max_page_count=1000000")
    clicks.add("N-after", "f", NOW)
    assert clicks.count() == kept + 1
    assert database.row("PRAGMA integrity_check") == ("ok",)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write read-only files")
def test_read_only_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "device.sqlite"
    Database(path).close()
    path.chmod(0o400)
    with pytest.raises(StoreBroken):
        Clicks(Database(path)).add("N1", "f", NOW)


def test_write_to_a_database_opened_for_reading_is_refused(database: Database) -> None:
    database.row("PRAGMA query_only=ON")
    with pytest.raises(StoreBroken, match="can't be written"):
        Clicks(database).add("N1", "f", NOW)


def test_click_survives_a_kill_right_after_its_answer(tmp_path: Path) -> None:
    # The child prints once add() has returned and is killed at once, without closing anything.
    path = tmp_path / "device.sqlite"
    program = (
        "import sys; from pathlib import Path; from datetime import datetime, UTC\n"
        "from device_app.store.database import Database; from device_app.store.clicks import Clicks\n"
        "clicks = Clicks(Database(Path(sys.argv[1])))\n"
        "clicks.add('N1', 'f1', datetime.now(UTC)); print('answered', flush=True)\n"
        "clicks._database._run('BEGIN IMMEDIATE'); clicks._database._depth = 1\n"
        "clicks.add('N2', 'f1', datetime.now(UTC)); print('uncommitted', flush=True); sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "answered\n"
        assert child.stdout.readline() == "uncommitted\n"
        child.send_signal(signal.SIGKILL)
    database = Database(path)
    assert [click.news_id for click in Clicks(database).recent()] == ["N1"]
    database.close()


def test_erase_keeps_the_spent_budget_and_leaves_no_trace_of_the_reader(
    database: Database, make_card: MakeCard
) -> None:
    from device_app.store.news import NewsStore

    NewsStore(database).put_cards([make_card("N-zanzibar", title="Zanzibar unmistakable")], NOW)
    Clicks(database).add("N-zanzibar", "f1", NOW)
    Preferences(database).set("sections", ["zanzibar"])
    LedgerRepository(database).append(charge(50.0))
    database.erase()
    assert Clicks(database).count() == 0
    assert Clicks(database).latest_id() == 0
    assert Preferences(database).get("sections") is None
    assert LedgerRepository(database).total("reports") == 50
    assert LedgerRepository(database).entries().rows[0].subject == ""
    for file in database.path.parent.iterdir():
        if file.is_file():
            assert b"anzibar" not in file.read_bytes(), file.name


def test_interrupted_erase_deletes_everything_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, run = tmp_path / "device.sqlite", Database._run
    for step, deleted in (("VACUUM", True), ("COMMIT", False)):
        path.unlink(missing_ok=True)
        stores = DeviceStores(path)
        stores.preferences.set("privacy", {"mode": "none"})
        Clicks(stores.database).add("N1", "f1", NOW)

        def killed(database: Database, sql: str, values: Sequence[Any] = (), step: str = step) -> sqlite3.Cursor:
            if sql == step:
                raise KeyboardInterrupt
            return run(database, sql, values)

        with monkeypatch.context() as patched:
            patched.setattr(Database, "_run", killed)
            with pytest.raises(KeyboardInterrupt):
                stores.erase({"privacy": stores.preferences.get("privacy")})
        stores.close()
        again = DeviceStores(path)
        assert again.preferences.get("privacy") == {"mode": "none"}, "a report switched off stays off"
        assert (again.clicks.count() == 0) == deleted
        again.close()


def test_list_of_tables_describes_every_table(database: Database) -> None:
    described = (MIGRATIONS.parent / "tables.md").read_text()
    tables = [row[0] for row in database.rows("SELECT name FROM pragma_table_list WHERE type IN ('table', 'virtual')")]
    ours = [table for table in tables if not table.startswith(("_yoyo", "yoyo", "sqlite_"))]
    assert len(ours) > 15
    assert [table for table in ours if f"| `{table}` |" not in described] == []


def test_list_of_tables_names_existing_classes_and_tables() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", (MIGRATIONS.parent / "tables.md").read_text(), re.M)
    assert len(rows) > 40
    files = [path for kind in ("*.py", "*.sql") for path in MIGRATIONS.parents[1].rglob(kind)]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    for table, owner in rows:
        assert re.search(rf"\bTABLE (IF NOT EXISTS )?{table}\b", code), table
        for name in re.findall(r"`(\w+)`", owner):
            assert f"\nclass {name}" in code, name


def test_empty_database_file_is_refused_without_starting_a_new_ledger(tmp_path: Path) -> None:
    path = tmp_path / "device.sqlite"
    Database(path).close()
    path.write_bytes(b"")
    with pytest.raises(StoreBroken, match="the file is there and is empty"):
        Database(path)
    assert path.stat().st_size == 0
