"""Backups of a folder whose database lies in a subfolder, on another disk, or behind a link.

Oracles: SQLite, which opens the restored database at the address in the settings; a kill at every change of a file.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from backend.db.engine import open_engine, writing
from backend.operations.backup import BackupRefused, back_up, check_backup, restore
from backend.settings import BackendSettings, load_settings
from tests.doubles.kills import Killed, Kills, listen
from tests.doubles.migrated import migrated

PLACES = ("within", "elsewhere", "linked")
LOGS = ("-wal", "-shm")


def settings_of(place: str, folder: Path) -> BackendSettings:
    """Return settings with an existing data folder, which holds the key, and a database that doesn't exist yet."""
    data = folder / "data"
    data.mkdir(parents=True)
    (data / "signing.key").write_bytes(b"key")
    (data / "owner.token").write_bytes(b"a file named nearly so")
    parent = folder / "disk" if place == "elsewhere" else data / "db"
    if place == "linked":
        (folder / "disk").mkdir()
        parent.symlink_to(folder / "disk")
    else:
        parent.mkdir()
    return load_settings(data_dir=data, database_url=f"sqlite:///{parent / 'own'}")


def database_of(settings: BackendSettings) -> Path:
    return Path(settings.database_url.removeprefix("sqlite:///"))


def add(settings: BackendSettings, table: str) -> None:
    engine = open_engine(settings.database_url)
    with writing(engine) as connection:
        connection.execute(text(f"CREATE TABLE {table} (x)"))
    engine.dispose()


def added(settings: BackendSettings) -> set[str]:
    database = database_of(settings)
    assert database.is_file()
    with closing(sqlite3.connect(database)) as opened:
        names = {name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return names & {"before", "after"}


def lose(settings: BackendSettings) -> None:
    """Delete everything but the key, and restore the link to the other disk."""
    database = database_of(settings)
    link = database.parent.resolve() if database.parent.is_symlink() else None
    for path in (database, *(database.with_name(database.name + end) for end in LOGS)):
        path.unlink(missing_ok=True)
    shutil.rmtree(settings.data_dir)
    settings.data_dir.mkdir()
    (settings.data_dir / "signing.key").write_bytes(b"key")
    if link is not None:
        assert not list(link.iterdir())


@pytest.fixture(params=PLACES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BackendSettings]:
    """Yield settings with a database in use, so that its logs exist."""
    one = settings_of(request.param, tmp_path)
    engine = migrated(one.database_url)
    add(one, "before")
    with engine.connect():
        yield one
    engine.dispose()


def test_backup_holds_a_consistent_database_snapshot(settings: BackendSettings, tmp_path: Path) -> None:
    """Regression, for a database in the folder: its file and logs were copied while in use, and restored unchecked."""
    copy = tmp_path / "backup"
    back_up(settings, copy)
    held = sorted(path for path in copy.rglob("own*") if path.is_file())
    assert [path.name for path in held] == ["own", "owner.token"]
    with closing(sqlite3.connect(held[0])) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("delete",), "a snapshot has no log"
        assert opened.execute("SELECT count(*) FROM before").fetchone() == (0,)
    add(settings, "after")
    lose(settings)
    restore(settings, copy)
    assert added(settings) == {"before"}
    assert (settings.data_dir / "owner.token").read_bytes() == b"a file named nearly so"


def test_backup_is_updated_and_files_of_an_older_layout_are_removed(settings: BackendSettings, tmp_path: Path) -> None:
    copy = tmp_path / "backup"
    back_up(settings, copy)
    (copy / "db").mkdir(exist_ok=True)
    (copy / "db" / "own-wal").write_bytes(b"as earlier copies had it")
    add(settings, "after")
    back_up(settings, copy)
    assert not (copy / "db" / "own-wal").exists()
    check_backup(settings, copy)
    lose(settings)
    restore(settings, copy)
    assert added(settings) == {"before", "after"}


def test_database_outside_the_data_folder_is_never_replaced(tmp_path: Path) -> None:
    settings = settings_of("elsewhere", tmp_path)
    migrated(settings.database_url).dispose()
    add(settings, "before")
    back_up(settings, tmp_path / "backup")
    shutil.rmtree(settings.data_dir)
    with pytest.raises(BackupRefused, match=r"disk contains own.* Move it away first"):
        restore(settings, tmp_path / "backup")
    assert not settings.data_dir.exists()
    database_of(settings).unlink()
    database_of(settings).with_name("own-wal").write_bytes(b"a log that what is put back would read")
    with pytest.raises(BackupRefused, match=r"disk contains own-.*Move it away first"):
        restore(settings, tmp_path / "backup")


@pytest.mark.parametrize("place", ["within", "elsewhere"])
def test_kill_during_a_restore_never_leaves_a_folder_without_its_database(place: str, tmp_path: Path) -> None:
    settings = settings_of(place, tmp_path / "first")
    migrated(settings.database_url).dispose()
    add(settings, "before")
    back_up(settings, tmp_path / "backup")
    step, killed = 1, True
    while killed:
        new = settings_of(place, tmp_path / str(step))
        lose(new)
        killed = _killed_at(step, tmp_path / str(step), new, tmp_path / "backup")
        if database_of(new).exists() and not (new.data_dir / "owner.token").exists():
            assert place == "elsewhere"
            with pytest.raises(BackupRefused, match="Move it away first"):
                restore(new, tmp_path / "backup")
            database_of(new).unlink()
        if not (new.data_dir / "owner.token").exists():
            restore(new, tmp_path / "backup")
        assert added(new) == {"before"}, step
        assert (new.data_dir / "signing.key").read_bytes() == b"key", step
        step += 1
    assert step > 5


def _killed_at(step: int, folder: Path, settings: BackendSettings, copy: Path) -> bool:
    kills = Kills(folder, {("server", "", step)}, armed=True)
    listen(kills)
    try:
        restore(settings, copy)
    except Killed:
        return True
    finally:
        listen(None)
    return False
