"""Copies of a backend's folder, made while it runs and looked through; `restoring` puts them back.

The database is copied first and the files after it, so that what it names is there: a file is written before a row
names it, and is never changed. Left out are the signing key, which is kept apart, what is made again by itself, a
storage of its own, which is copied by its own means wherever it lies, and what rounds under way have gathered: these
fail, with the reason, where a copy is put back.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from backend.db.engine import in_words
from backend.errors import OwnfeedError
from backend.releases.blobs import BlobStore
from backend.releases.draft import blob_refs
from backend.releases.errors import BlobDamaged, UnknownBlob
from backend.releases.reader import ReleaseReader
from backend.releases.store import SIGNING_KEY_FILE
from backend.settings import BackendSettings
from backend.storage.durable_files import UNFINISHED, files_below, make_private, write_durably
from backend.storage.local_folder import LocalFolder
from backend.storage.opening import mounted_folder
from device_app.wire.releases import ReleaseManifest

FACTS_FILE = "backup.json"
MADE_AGAIN = ("copies", "index", "graphs", "servers", "logs", "*.log", "*.lock", "*.pid", f"*{UNFINISHED}")
OF_ROUNDS_UNDER_WAY = ("uploads", "rounds", "sums")
LEFT_OUT = (*MADE_AGAIN, *OF_ROUNDS_UNDER_WAY, f"{SIGNING_KEY_FILE}*")
TRIES = 3
"""Of the folder's entries, besides the database."""


class BackupRefused(OwnfeedError):
    """A copy can't be made, is damaged, or would take the place of something; the message is one plain sentence."""

    code, status, title = "backup-refused", 500, "The backup can't be used"


class PartMissing(BackupRefused):
    """A file that a release needs is not in the copy, or not as it was published."""

    code, status, title = "backup-part-missing", 500, "The backup lacks a part"

    def __init__(self, folder: Path, release: str, why: Exception) -> None:
        super().__init__(f"{folder} lacks a part of {release}, or it is damaged: {why}")


class BackupFacts(BaseModel):
    """What a copy says of itself. database: 'sqlite', or 'postgresql', of which it holds no dump."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    made_at: AwareDatetime
    database: str


@dataclass(frozen=True)
class Backup:
    """A copy that was looked through: every file that a release needs is there, its bytes as it was published."""

    folder: Path
    facts: BackupFacts
    newest_release: str | None
    size_bytes: int


def back_up(settings: BackendSettings, folder: Path) -> Backup:
    """Copy a backend's folder, which may be in use, or bring an earlier copy in `folder` up to date.

    Whenever it is ended, the copy is the one of before or the new one. Raises BackupRefused, or OSError.
    """
    source = settings.data_dir
    if not source.is_dir():
        raise BackupRefused(f"{source} is no folder of a backend.")
    if folder.resolve().is_relative_to(source.resolve()):
        raise BackupRefused(f"{folder} lies in the folder that is to be copied.")
    if folder.exists() and any(folder.iterdir()) and not (folder / FACTS_FILE).exists():
        raise BackupRefused(f"{folder} holds something else than a backup.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / FACTS_FILE).exists():
        _write_facts(settings, folder)  # so that a try that is ended here can be made again
    for left in range(TRIES - 1, -1, -1):
        try:
            return _copied(settings, folder, anew=left < TRIES - 1)
        except PartMissing:
            # A release was published meanwhile, and an old one's parts went before they were copied; or the copy's disk
            # has damaged a file that was taken for the same.
            if not left:
                raise
    raise AssertionError("unreachable")


def _copied(settings: BackendSettings, folder: Path, *, anew: bool) -> Backup:
    """anew: without what an earlier copy has of the same name, size and time."""
    source, database = settings.data_dir, sqlite_file(settings)
    copied = None if database is None else folder / place_of(database, source)
    snapshot = None
    if database is not None and copied is not None:
        snapshot = _snapshot(database, copied.with_name(f"{copied.name}{UNFINISHED}"))
    apart = mounted_folder(settings.storage)
    wanted = {
        path.relative_to(source)
        for path in files_in(source, database)
        if apart is None or not path.is_relative_to(apart) or source.is_relative_to(apart)
    }
    for name in sorted(wanted):
        copy_file(source / name, folder / name, anew=anew)
    _newest_release(settings, folder, snapshot)  # its parts are here: now it may take the place of the one of before
    os.sync()
    if snapshot is not None and copied is not None:
        snapshot.replace(copied)
        wanted.add(copied.relative_to(folder))
    _write_facts(settings, folder)
    left = [path for path in files_below(folder) if path.name.endswith(UNFINISHED)]  # of a try that was ended
    for path in (*files_in(folder, None), *left):
        if path.relative_to(folder) not in wanted and path.name != FACTS_FILE:
            path.unlink()
    return check_backup(settings, folder)


def check_backup(settings: BackendSettings, folder: Path) -> Backup:
    """Look through a copy: its database, and every file of the releases that can be published again.

    Raises BackupRefused.
    """
    try:
        facts = BackupFacts.model_validate_json((folder / FACTS_FILE).read_bytes())
    except (OSError, ValidationError) as broken:
        raise BackupRefused(f"{folder} holds no whole backup: {FACTS_FILE} can't be read.") from broken
    database = sqlite_file(settings)
    if facts.database != ("postgresql" if database is None else "sqlite"):
        raise BackupRefused(f"{folder} was made beside {facts.database}, and database_url names another engine.")
    copied = None if database is None else folder / place_of(database, settings.data_dir)
    if copied is not None:
        _require_whole(copied)
    newest = _newest_release(settings, folder, copied)
    size = sum(path.stat().st_size for path in files_in(folder, None))
    return Backup(folder, facts, newest, size)


def _write_facts(settings: BackendSettings, folder: Path) -> None:
    engine = "postgresql" if sqlite_file(settings) is None else "sqlite"
    facts = BackupFacts(made_at=datetime.now(UTC), database=engine)
    write_durably(folder / FACTS_FILE, facts.model_dump_json(indent=2).encode())


def sqlite_file(settings: BackendSettings) -> Path | None:
    """The database's file; None for another engine."""
    url = make_url(settings.database_url)
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def place_within(database: Path, data_dir: Path) -> Path | None:
    """Where a folder has its database, by paths as they are written, else as links lead; None if it lies elsewhere."""
    for path_of in (os.path.abspath, os.path.realpath):
        file, folder = Path(path_of(database)), Path(path_of(data_dir))
        if file.is_relative_to(folder):
            return file.relative_to(folder)
    return None


def place_of(database: Path, data_dir: Path) -> Path:
    """Where a copy has the database: as the folder has it, or at the top."""
    return place_within(database, data_dir) or Path(database.name)


def _snapshot(database: Path, part: Path) -> Path:
    """The database at one moment, beside whoever writes to it."""
    make_private(part.parent)
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as open_database:
            open_database.execute("VACUUM INTO ?", (str(part),))
    except sqlite3.Error as broken:
        raise BackupRefused(f"The database {database} can't be copied: {in_words(broken)}.") from broken
    part.chmod(0o600)
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return part


def _require_whole(database: Path) -> None:
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as open_database:
            (found,) = open_database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as broken:
        raise BackupRefused(f"The database {database} can't be read: {in_words(broken)}.") from broken
    if found != "ok":
        raise BackupRefused(f"The database {database} is damaged: {found}.")


def files_in(folder: Path, database: Path | None) -> list[Path]:
    """What a copy of the folder holds, but for the database and its logs."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if not any(fnmatch(path.name, pattern) for pattern in LEFT_OUT):
            found += [each for each in (files_below(path) if path.is_dir() else (path,)) if each.is_file()]
    found = [path for path in found if not path.name.endswith(UNFINISHED) and not path.is_symlink()]
    return found if database is None else _without(database, found, folder)


def _without(database: Path, found: list[Path], folder: Path) -> list[Path]:
    """Files that are not the database's where it lies, nor at its place in a copy."""
    at, its_place = database.resolve().parent, (folder / place_of(database, folder)).parent
    named = {path for path in found if is_of_database(path, database)}
    its = {path for path in named if path.parent.resolve() == at or path.parent == its_place}
    return [path for path in found if path not in its]


def is_of_database(path: Path, database: Path) -> bool:
    """Whether a file has the name of a database, of its logs, or of something that is kept beside it."""
    return path.name == database.name or path.name.startswith((f"{database.name}-", f"{database.name}."))


def copy_file(source: Path, target: Path, *, anew: bool = False) -> None:
    """A file whole or not at all; one removed meanwhile is none. anew: also where there is one of the same size and
    time, which is else taken for the same."""
    try:
        present = source.stat()
        if not anew and target.exists():
            before = target.stat()
            if (before.st_size, before.st_mtime_ns) == (present.st_size, present.st_mtime_ns):
                return
        make_private(target.parent)
        part = target.with_name(f"{target.name}{UNFINISHED}")
        shutil.copy2(source, part)
    except FileNotFoundError:
        return
    part.chmod(0o600)
    part.replace(target)


def _newest_release(settings: BackendSettings, folder: Path, database: Path | None) -> str | None:
    """The newest release of a database, None for PostgreSQL's, all its parts in the copy looked at.

    Raises BackupRefused.
    """
    read_only = "mode=ro&immutable=1&uri=true"
    url = settings.database_url if database is None else f"sqlite:///file:{database}?{read_only}"
    engine = create_engine(url)
    manifest: ReleaseManifest | None = None
    try:
        kept = max(settings.releases_kept, settings.releases_answered)
        # What lies in a storage of its own is copied by the storage's means. Whether it is whole is looked at here too,
        # without this machine's copies, which hide what the storage lacks, and would fill a folder that is put back.
        here = folder / settings.blob_dir.relative_to(settings.data_dir)
        blobs = LocalFolder(here) if settings.storage is None else settings.open_storage().under("blobs")
        reader = ReleaseReader(engine, blobs, kept=kept)
        manifests, stored, whole = reader.kept(), BlobStore(blobs), set[str]()
        for manifest in manifests:
            for sha256 in {ref.sha256 for ref in blob_refs(manifest)} - whole:
                stored.require(sha256)
                whole.add(sha256)
    except (UnknownBlob, BlobDamaged) as missing:
        raise PartMissing(folder, "" if manifest is None else manifest.release, missing) from missing
    except SQLAlchemyError as broken:
        raise BackupRefused(f"The database beside {folder} can't be read: {broken}") from broken
    finally:
        engine.dispose()
    return manifests[0].release if manifests else None
