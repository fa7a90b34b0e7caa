"""Repairs a profile whose databases are lost or damaged.

It restores the last copies or starts with empty files.
"""

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from device_app.copies import databases_of
from device_app.errors import NothingDamaged, StoreBroken
from device_app.settings import DeviceSettings
from device_app.store.database import (
    BUSY_TIMEOUT_SEC,
    EMPTY,
    LOGS,
    MIGRATIONS,
    NOT_OURS,
    Database,
    applied_to,
    draft_of,
    overwrite_draft,
    unreadable,
)
from device_app.store.database_copy import MARK_TABLE, DatabaseCopy, damage
from device_app.store.profile import ASIDE, ProfileLock, why_lost
from device_app.store.searches import SEARCH_MIGRATIONS
from protocol.private_files import make_file


@dataclass(frozen=True)
class ReplacedDatabase:
    """One database that was replaced.

    copied_at: time of the restored copy, None for an empty file. aside: where the damaged file is now, None if it was
    missing.
    """

    database: Path
    why: str
    copied_at: datetime | None
    aside: Path | None


def restore_copies(settings: DeviceSettings, now: datetime) -> tuple[ReplacedDatabase, ...]:
    """Replace each lost or damaged database with its last copy; intact ones stay.

    Nothing is charged here: the copy is marked as one, and the next opening of the profile charges for it
    (`privacy.restored_copy`). A crash leaves the profile unchanged, or without a database, in which case it refuses to
    start.

    Raises NothingDamaged if both are intact, and ProfileInUse. Raises StoreBroken, without changing anything, if there
    is no copy, it is damaged, or the clock shows an earlier time than the copy.
    """
    lock = ProfileLock(settings.home)
    try:
        damaged = _damaged(settings)
        if not damaged:
            raise NothingDamaged(settings.home)
        marks = [DatabaseCopy(database).check() for database, _ in damaged]
        for (database, _), mark in zip(damaged, marks, strict=True):
            if now < mark.at:
                raise StoreBroken(
                    DatabaseCopy(database).path,
                    f"the copy is from {mark.at:%Y-%m-%d %H:%M} UTC, but this machine's clock says "
                    f"{now.astimezone(UTC):%Y-%m-%d %H:%M} UTC; set the clock first",
                )
        return tuple(
            ReplacedDatabase(database, why, mark.at, _put(database, now, marked=database == settings.database))
            for (database, why), mark in zip(damaged, marks, strict=True)
        )
    finally:
        lock.release()


def start_anew(settings: DeviceSettings, now: datetime) -> tuple[ReplacedDatabase, ...]:
    """Replace each lost or damaged database with an empty one; intact ones stay.

    The device then lacks everything that the database contained, including the ledger. The damaged file and its copy
    are moved aside. Does nothing for a new profile. Raises StoreBroken, ProfileInUse.
    """
    lock = ProfileLock(settings.home)
    migrations = dict(zip(databases_of(settings), (MIGRATIONS, SEARCH_MIGRATIONS), strict=True))
    try:
        done = []
        for database, why in _damaged(settings):
            try:
                aside = _move_aside(database, now)
                _move_aside(DatabaseCopy(database).path, now)
            except OSError as broken:
                raise StoreBroken(database, broken.strerror or str(broken)) from broken
            Database(database, migrations[database]).close()
            done.append(ReplacedDatabase(database, why, None, aside))
        return tuple(done)
    finally:
        lock.release()


def _damaged(settings: DeviceSettings) -> list[tuple[Path, str]]:
    return [(database, why) for database in databases_of(settings) if (why := _why(database))]


def _why(database: Path) -> str | None:
    """Return what is wrong with a database; None if it is intact or never existed.

    Raises StoreBroken.
    """
    if not database.exists():
        return why_lost(database)
    if database.stat().st_size == 0:
        return EMPTY
    try:
        if not applied_to(database):
            return NOT_OURS
        with closing(sqlite3.connect(database, timeout=BUSY_TIMEOUT_SEC, isolation_level=None)) as connection:
            found = damage(connection)
        return f"a part of it is damaged ({' '.join(found.split())})" if found else None
    except sqlite3.Error as broken:
        if unreadable(broken):
            return f"it is damaged ({broken})"
        raise StoreBroken(database, str(broken)) from broken


def _put(database: Path, now: datetime, *, marked: bool) -> Path | None:
    """Restore the copy in the database's place, and keep the copy too.

    marked: whether it contains a ledger.
    """
    part = draft_of(database)
    try:
        overwrite_draft(database)
        make_file(part)
        with DatabaseCopy(database).path.open("rb") as source, part.open("wb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        if not marked:
            with closing(sqlite3.connect(part, isolation_level=None)) as connection:
                connection.execute(f"DROP TABLE {MARK_TABLE}")
        aside = _move_aside(database, now)
        part.replace(database)
        return aside
    except (OSError, sqlite3.Error) as broken:
        raise StoreBroken(database, str(broken)) from broken


def _move_aside(database: Path, now: datetime) -> Path | None:
    """Rename a file and its logs, the file first.

    Without its log, the file could pass as intact but incomplete.
    """
    stamp, number = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}", 1
    while list(database.parent.glob(f"{database.stem}{ASIDE}{stamp}-{number}{database.suffix}*")):
        number += 1
    aside = database.with_name(f"{database.stem}{ASIDE}{stamp}-{number}{database.suffix}")
    found = database.exists()
    for ending in ("", *LOGS):
        log = database.with_name(database.name + ending)
        if log.exists():
            log.replace(aside.with_name(aside.name + ending))
    return aside if found else None
