"""Damaged files of SQLite databases. Oracle: the damage that the test did."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

import backend.db.engine
from backend.db.engine import DatabaseDamaged, check_sqlite_file, is_open_here, migrate, open_engine, reading
from backend.errors import may_pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "ownfeed.sqlite"
    migrate(f"sqlite:///{made}")
    assert not made.with_name("ownfeed.sqlite-wal").exists()
    return made


def test_complete_or_missing_file_passes_the_check(path: Path, tmp_path: Path) -> None:
    check_sqlite_file(f"sqlite:///{path}", used=True)
    check_sqlite_file(f"sqlite:///{tmp_path / 'none.sqlite'}", used=True)
    check_sqlite_file("postgresql://ownfeed@/ownfeed", used=True)


@pytest.mark.parametrize("left", [1, 50, 4_096, -1])
def test_truncated_file_is_named_in_the_error(path: Path, left: int) -> None:
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(DatabaseDamaged, match=r"ownfeed\.sqlite is damaged: it is (cut off after|not an SQLite)"):
        check_sqlite_file(f"sqlite:///{path}", used=False)


def test_empty_file_is_refused_only_after_releases_were_published(path: Path) -> None:
    path.write_bytes(b"")
    check_sqlite_file(f"sqlite:///{path}", used=False)
    with pytest.raises(DatabaseDamaged, match="it is empty, although releases were published from it"):
        check_sqlite_file(f"sqlite:///{path}", used=True)


def test_check_leaves_a_file_with_a_write_ahead_log_to_sqlite(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    path.with_name("ownfeed.sqlite-wal").write_bytes(b"log")
    check_sqlite_file(f"sqlite:///{path}", used=True)


def test_damage_found_by_a_read_is_reported_and_can_be_repaired(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4_096] + b"\xff" * (len(content) - 4_096))
    engine = open_engine(f"sqlite:///{path}")
    with (
        pytest.raises(DatabaseDamaged, match=r"ownfeed\.sqlite is damaged: .*malformed") as damaged,
        reading(engine) as connection,
    ):
        connection.execute(text("SELECT * FROM pool_version")).all()
    assert may_pass(damaged.value)
    engine.dispose()


def test_concurrent_checkpoint_is_not_reported_as_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the log was checked last, so a header with pages still in the log looked like a truncated file."""
    path.write_bytes(path.read_bytes()[:-1])
    log, opening = path.with_name("ownfeed.sqlite-wal"), Path.open
    log.write_bytes(b"log")

    def folded(self: Path, *how: Any, **more: Any) -> Any:
        if self == path:
            os.truncate(log, 0)
        return opening(self, *how, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", folded)
        check_sqlite_file(f"sqlite:///{path}", used=True)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_checking_a_file_in_use_releases_no_lock_of_its_process(tmp_path: Path) -> None:
    """Another process opens and closes the database meanwhile, as an operator's command does.

    Regression: it took itself for the last one, which deletes the log.
    """
    path = tmp_path / "locked.sqlite"
    engine = open_engine(f"sqlite:///{path}")
    try:
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE kept (value)"))
        with reading(engine) as connection:
            connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))  # what lies in the log is left to SQLite
        check_sqlite_file(str(engine.url), used=True)
        look = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM kept').fetchall()"
        subprocess.run([sys.executable, "-c", look, path], check=True, timeout=60)
        assert path.with_name("locked.sqlite-wal").exists()
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO kept VALUES (1)"))
    finally:
        engine.dispose()


def test_file_without_an_open_engine_is_checked(path: Path) -> None:
    """One engine was closed, and one was dropped without closing it."""
    for close in (Engine.dispose, lambda _: None):
        engine = open_engine(f"sqlite:///{path}")
        with reading(engine) as connection:
            connection.execute(text("SELECT 1"))
        assert is_open_here(path)
        close(engine)
        del engine, connection
        gc.collect()
        assert not is_open_here(path)


def test_connection_counts_as_open_before_it_takes_its_first_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise another thread's check would cost the connection its first lock: the change to WAL may wait half a
    minute."""
    found = []
    set_pragma = backend.db.engine._set

    def looked(raw: sqlite3.Connection, pragma: str) -> None:
        found.append(is_open_here(path))
        set_pragma(raw, pragma)

    monkeypatch.setattr(backend.db.engine, "_set", looked)
    engine = open_engine(f"sqlite:///{path}")
    with reading(engine):
        pass
    engine.dispose()
    assert set(found) == {True}
