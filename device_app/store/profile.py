"""Lock a profile's folder for one process, and detect whether it was used before."""

import os
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from device_app.errors import ProfileInUse, StoreBroken, StoreDamaged
from device_app.store.database import Remedy
from device_app.store.database_copy import DatabaseCopy
from protocol.private_files import FILE_MODE, make_folder, write_file

LOCK_NAME, HOLDER_NAME = "device.lock", "device.pid"


class ProfileLock:
    """An exclusive lock on a profile's folder, held by the operating system for this process.

    It ends with the process in any case, so that a crash leaves no stale lock. The guarantees of the database itself
    (`RoundUploads`, `SumParts`) don't depend on it.
    """

    def __init__(self, home: Path) -> None:
        """Take the lock of the profile in `home`.

        Raises ProfileInUse, naming the process, or StoreBroken.
        """
        self._holder = home / HOLDER_NAME
        try:
            make_folder(home)
            self._lock = FileLock(home / LOCK_NAME, timeout=0, mode=FILE_MODE, thread_local=False)
            self._lock.acquire()
            write_file(self._holder, f"process {os.getpid()}")
        except Timeout:
            raise ProfileInUse(home, _holder(self._holder)) from None
        except OSError as broken:
            raise StoreBroken(home, broken.strerror or str(broken)) from broken

    def release(self) -> None:
        """Release the profile for other processes; calling it again does nothing."""
        if self._lock.is_locked:
            self._holder.unlink(missing_ok=True)
            self._lock.release()


def _holder(note: Path) -> str:
    try:
        return note.read_text(encoding="utf-8").strip() or "another process"
    except OSError:
        return "another process"


BEGUN_NAME = "profile.begun"
ASIDE = ".damaged-"
"""Part of the names of files that were replaced by a copy or an empty database."""
BESIDE = {"device.sqlite": (BEGUN_NAME, "page.key", "views/searches.sqlite")}
"""Other files that are created only after a database, by its name. Locks and drafts don't show that it existed."""


def marks_of(database: Path) -> list[Path]:
    """Return traces of an earlier use of this database, other than the database itself."""
    home = database.parent
    named = (DatabaseCopy(database).path, database.with_name(f"{database.name}-wal"))
    beside = [home / name for name in BESIDE.get(database.name, ())]
    return [path for path in (*named, *beside, *asides_of(database)) if path.exists()]


def asides_of(database: Path) -> list[Path]:
    """Return the files of a database, its log or its copy that were moved aside."""
    return sorted(database.parent.glob(f"{database.stem}*{ASIDE}*")) if database.parent.exists() else []


def why_lost(database: Path) -> str | None:
    """Return why a missing database must have existed before.

    None if it is there, or never existed.
    """
    if database.exists() or not (marks := marks_of(database)):
        return None
    names = ", ".join(path.relative_to(database.parent).as_posix() for path in marks)
    return f"it is missing, and was there before (beside it: {names})"


def refuse_lost(database: Path, remedy: Remedy) -> None:
    """Raise StoreDamaged if the database is missing but was there before.

    An empty one would forget what was spent.
    """
    if why := why_lost(database):
        raise StoreDamaged(database, why, remedy())


def begin(database: Path, at: datetime) -> None:
    """Mark a profile as in use, once its database exists. Raises StoreBroken."""
    mark = database.parent / BEGUN_NAME
    try:
        if not mark.exists():
            write_file(mark, f"This profile has been in use since {at:%Y-%m-%d}; its database is {database.name}.\n")
    except OSError as broken:
        raise StoreBroken(mark, broken.strerror or str(broken)) from broken
