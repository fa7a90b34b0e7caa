"""What a killed device left in its write-ahead log. Oracle: the bytes of its files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from device_app.store.database import Database

SECRET = "9f" * 32


def left_by_a_kill(folder: Path) -> Path:
    """A store that was killed between dropping the keys of a sum and emptying the log."""
    killed = folder / "killed"
    killed.mkdir()
    lived = Database(folder / "device.sqlite")
    with lived.transaction():
        lived.write("INSERT INTO preference (name, value) VALUES ('secret', ?)", (SECRET,))
    with lived.transaction():
        lived.write("DELETE FROM preference WHERE name = 'secret'")
    for path in folder.glob("device.sqlite*"):  # what a kill at this moment leaves
        (killed / path.name).write_bytes(path.read_bytes())
    lived.close()
    assert SECRET.encode() in (killed / "device.sqlite-wal").read_bytes()
    return killed / "device.sqlite"


def has_secret(store: Path) -> bool:
    return any(SECRET.encode() in path.read_bytes() for path in store.parent.iterdir())


def test_data_deleted_before_a_kill_is_gone_after_reopening(tmp_path: Path) -> None:
    store = left_by_a_kill(tmp_path)
    other = sqlite3.connect(store)  # the log goes with the last connection that closes
    other.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    again = Database(store)
    assert not has_secret(store)
    again.close()
    other.close()


def test_log_read_by_another_process_is_emptied_at_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: it wasn't checked whether the log could be emptied."""
    store = left_by_a_kill(tmp_path)
    other = sqlite3.connect(store, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM preference").fetchall()
    monkeypatch.setattr("device_app.store.database.BUSY_TIMEOUT_SEC", 0.0)
    again = Database(store)
    assert has_secret(store)
    other.execute("COMMIT")
    again.close()
    assert not has_secret(store)
    other.close()


def test_opening_another_processs_store_leaves_its_log_alone(tmp_path: Path) -> None:
    """Regression: a training process might have waited there for the device's own connections."""
    store = left_by_a_kill(tmp_path)
    holder = sqlite3.connect(store)
    holder.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    size = store.with_name("device.sqlite-wal").stat().st_size
    other = Database.of_another(store)
    assert other.number("SELECT count(*) FROM preference WHERE name = 'secret'") == 0
    assert store.with_name("device.sqlite-wal").stat().st_size == size > 0
    other.close()
    holder.close()
