"""A backup put in the place of a backend's folder that is gone.

It is copied beside that place and looked through there, and then renamed: a folder is never half of one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from backend.backup import (
    FACTS_FILE,
    Backup,
    BackupRefused,
    check_backup,
    copy_file,
    files_in,
    is_of_database,
    place_within,
    sqlite_file,
)
from backend.releases.store import SIGNING_KEY_FILE
from backend.settings import BackendSettings
from backend.storage.durable_files import UNFINISHED, make_private


def restore(settings: BackendSettings, folder: Path) -> Backup:
    """Put a copy in the place of a folder that is gone, but for the signing key, which may lie there already.

    Whenever it is ended, the next call begins anew, maybe with another copy, and the key is in the one place or the
    other. A database that lies elsewhere is put there last; ended after that, it is to be moved away for the next call.
    Raises BackupRefused if the copy is damaged or the folder holds anything else, and then nothing is changed.
    """
    target = settings.data_dir
    there = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if others := sorted(there - {SIGNING_KEY_FILE}):
        raise BackupRefused(f"{target} holds {', '.join(others[:3])}. Move all but {SIGNING_KEY_FILE} away first.")
    apart = _database_apart(settings)
    found = check_backup(settings, folder)
    coming = target.with_name(f"{target.name}.restored")
    _leave_out(coming, target)
    _stage(settings, folder, target.with_name(f"{target.name}.restoring")).rename(coming)
    if (target / SIGNING_KEY_FILE).exists():
        copy_file(target / SIGNING_KEY_FILE, coming / SIGNING_KEY_FILE)
        os.sync()
        (target / SIGNING_KEY_FILE).unlink()
    if target.is_dir():
        target.rmdir()
    if apart is not None:
        _put_apart(coming / apart.name, apart)
    coming.rename(target)
    return found


def _database_apart(settings: BackendSettings) -> Path | None:
    """Where the settings want the database, if that isn't in the folder. Raises BackupRefused if one is there."""
    database = sqlite_file(settings)
    if database is None or place_within(database, settings.data_dir) is not None:
        return None
    beside = database.parent.iterdir() if database.parent.is_dir() else ()
    if there := sorted(path.name for path in beside if is_of_database(path, database)):
        raise BackupRefused(f"{database.parent} holds {', '.join(there[:3])}. Move this away first.")
    return database


def _put_apart(copied: Path, database: Path) -> None:
    """Before the folder is there: a server that finds the folder finds its database, too."""
    part = database.with_name(f".{database.name}{UNFINISHED}")  # no name that is refused when the next call finds it
    make_private(database.parent)
    shutil.copy2(copied, part)
    os.sync()
    part.replace(database)
    copied.unlink()


def _leave_out(coming: Path, target: Path) -> None:
    """Remove what a call that was ended has staged, of this copy or another one; its key goes back first."""
    if (coming / SIGNING_KEY_FILE).exists() and not (target / SIGNING_KEY_FILE).exists():
        target.mkdir(mode=0o700, exist_ok=True)
        (coming / SIGNING_KEY_FILE).rename(target / SIGNING_KEY_FILE)
        os.sync()
    shutil.rmtree(coming, ignore_errors=True)


def _stage(settings: BackendSettings, folder: Path, staging: Path) -> Path:
    """Copy a backup to where it becomes the folder, and look it through there."""
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(mode=0o700, parents=True)
    for path in files_in(folder, None):
        copy_file(path, staging / path.relative_to(folder))
    check_backup(settings, staging)
    (staging / FACTS_FILE).unlink()
    os.sync()
    return staging
