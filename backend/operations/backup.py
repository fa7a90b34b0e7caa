"""Backs up a server's folder while it runs, and restores a backup in place of a lost folder.

The database is copied first and the files after it, so that every file it names is present: a file is written before a
row names it, and never changes. Left out are the signing key, which is kept separately; the operator's token and
everything else that is recreated automatically; an external storage, which needs its own backup; and the data of rounds
in progress, which fail with that reason after a restore.

A backup is restored into a temporary folder beside its place, checked there, and then renamed, so the folder is never
partial.
"""

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
from backend.releases.blobs import BlobStore, blob_refs
from backend.releases.errors import BlobDamaged, UnknownBlob
from backend.releases.store import SIGNING_KEY_FILE, ReleaseReader
from backend.settings import BackendSettings
from backend.storage.durable_files import UNFINISHED, files_below, make_private, write_durably
from backend.storage.object_store import LocalFolder
from backend.storage.opening import mounted_folder
from protocol.releases import ReleaseManifest

FACTS_FILE = "backup.json"
MADE_AGAIN = ("copies", "index", "graphs", "servers", "logs", "*.log", "*.lock", "*.pid", f"*{UNFINISHED}")
OF_ROUNDS_UNDER_WAY = ("uploads", "rounds", "sums")
OPERATORS_TOKEN = "admin.token"
"""Whoever has it controls the server, and a backup doesn't need it: the next start creates another."""
LEFT_OUT = (*MADE_AGAIN, *OF_ROUNDS_UNDER_WAY, f"{SIGNING_KEY_FILE}*", f"{OPERATORS_TOKEN}*")
TRIES = 3
"""Tries to copy the folder's files, besides the database."""


class BackupRefused(OwnfeedError):
    """A backup can't be made, is damaged, or would overwrite something.

    The message is one plain sentence.
    """

    code, status, title = "backup-refused", 500, "The backup can't be used"


class PartMissing(BackupRefused):
    """A file that a release needs is missing from the backup, or differs from what was published."""

    code, status, title = "backup-part-missing", 500, "The backup lacks a part"

    def __init__(self, folder: Path, release: str, why: Exception) -> None:
        super().__init__(f"{folder} lacks a part of {release}, or it is damaged: {why}")


class BackupFacts(BaseModel):
    """A backup's description of itself.

    database: 'sqlite', or 'postgresql', of which it contains no dump.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    made_at: AwareDatetime
    database: str


@dataclass(frozen=True)
class Backup:
    """A checked backup: every file that a release needs is present, with its bytes as published."""

    folder: Path
    facts: BackupFacts
    newest_release: str | None
    size_bytes: int


def back_up(settings: BackendSettings, folder: Path) -> Backup:
    """Back up a server's folder, which may be in use, or update an earlier backup in `folder`.

    Whenever it is interrupted, the backup is either the previous or the new one. Raises BackupRefused, or OSError.
    """
    source = settings.data_dir
    if not source.is_dir():
        raise BackupRefused(f"{source} is not a backend's data folder.")
    if folder.resolve().is_relative_to(source.resolve()):
        raise BackupRefused(f"{folder} is inside the folder that is being backed up.")
    if folder.exists() and any(folder.iterdir()) and not (folder / FACTS_FILE).exists():
        raise BackupRefused(f"{folder} contains something other than a backup.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / FACTS_FILE).exists():
        _write_facts(settings, folder)  # so that an interrupted try can be repeated
    for left in range(TRIES - 1, -1, -1):
        try:
            return _copied(settings, folder, anew=left < TRIES - 1)
        except PartMissing:
            # A release was published meanwhile, and an old one's files were removed before they were copied; or the
            # backup's disk has damaged a file that was considered unchanged.
            if not left:
                raise
    raise AssertionError("unreachable")


def _copied(settings: BackendSettings, folder: Path, *, anew: bool) -> Backup:
    """Copy the folder. anew: also copy files that the backup has with the same name, size and time."""
    source, database, token = settings.data_dir, _sqlite_file(settings), settings.admin_token_file
    copied = None if database is None else folder / _place_of(database, source)
    snapshot = None
    if database is not None and copied is not None:
        snapshot = _snapshot(database, copied.with_name(f"{copied.name}{UNFINISHED}"))
    apart = mounted_folder(settings.storage)
    wanted = {
        path.relative_to(source)
        for path in _files_in(source, database)
        if apart is None or not path.is_relative_to(apart) or source.is_relative_to(apart)
    }
    wanted -= {path for path in wanted if (source / path).samefile(token)} if token.exists() else set()
    for name in sorted(wanted):
        _copy_file(source / name, folder / name, anew=anew)
    _newest_release(settings, folder, snapshot)  # its files are here: now it may replace the previous one
    os.sync()
    if snapshot is not None and copied is not None:
        snapshot.replace(copied)
        wanted.add(copied.relative_to(folder))
    _write_facts(settings, folder)
    left = [path for path in files_below(folder) if path.name.endswith(UNFINISHED)]  # of an interrupted try
    for path in (*_files_in(folder, None), *left):
        if path.relative_to(folder) not in wanted and path.name != FACTS_FILE:
            path.unlink()
    return check_backup(settings, folder)


def check_backup(settings: BackendSettings, folder: Path) -> Backup:
    """Check a backup: its database, and every file of the releases that can be published again.

    Raises BackupRefused.
    """
    try:
        facts = BackupFacts.model_validate_json((folder / FACTS_FILE).read_bytes())
    except (OSError, ValidationError) as broken:
        raise BackupRefused(f"{folder} contains no complete backup: {FACTS_FILE} can't be read.") from broken
    database = _sqlite_file(settings)
    if facts.database != ("postgresql" if database is None else "sqlite"):
        raise BackupRefused(f"{folder} was made with {facts.database}, but database_url names another database engine.")
    copied = None if database is None else folder / _place_of(database, settings.data_dir)
    if copied is not None:
        _require_intact(copied)
    newest = _newest_release(settings, folder, copied)
    size = sum(path.stat().st_size for path in _files_in(folder, None))
    return Backup(folder, facts, newest, size)


def restore(settings: BackendSettings, folder: Path) -> Backup:
    """Restore a backup in place of a lost folder, except the signing key, which may be there already.

    If it is interrupted, the next call starts again, perhaps with another backup, and the key is in one place or the
    other. A database outside the folder is restored last; after an interruption then, it must be moved away before the
    next call. Raises BackupRefused if the backup is damaged or the folder holds anything else, and then nothing is
    changed.
    """
    target = settings.data_dir
    there = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if others := sorted(there - {SIGNING_KEY_FILE}):
        raise BackupRefused(f"{target} contains {', '.join(others[:3])}. Move all but {SIGNING_KEY_FILE} away first.")
    apart = _database_apart(settings)
    found = check_backup(settings, folder)
    coming = target.with_name(f"{target.name}.restored")
    _leave_out(coming, target)
    _stage(settings, folder, target.with_name(f"{target.name}.restoring")).rename(coming)
    if (target / SIGNING_KEY_FILE).exists():
        _copy_file(target / SIGNING_KEY_FILE, coming / SIGNING_KEY_FILE)
        os.sync()
        (target / SIGNING_KEY_FILE).unlink()
    if target.is_dir():
        target.rmdir()
    if apart is not None:
        _put_apart(coming / apart.name, apart)
    coming.rename(target)
    return found


def _database_apart(settings: BackendSettings) -> Path | None:
    """The database's path in the settings if it is outside the folder.

    Raises BackupRefused if a database is there.
    """
    database = _sqlite_file(settings)
    if database is None or _place_within(database, settings.data_dir) is not None:
        return None
    beside = database.parent.iterdir() if database.parent.is_dir() else ()
    if there := sorted(path.name for path in beside if _is_of_database(path, database)):
        raise BackupRefused(f"{database.parent} contains {', '.join(there[:3])}. Move it away first.")
    return database


def _put_apart(copied: Path, database: Path) -> None:
    """Put the database in place before the folder, so that a server that finds the folder finds its database, too."""
    part = database.with_name(f".{database.name}{UNFINISHED}")  # a name that the next call doesn't refuse
    make_private(database.parent)
    shutil.copy2(copied, part)
    os.sync()
    part.replace(database)
    copied.unlink()


def _leave_out(coming: Path, target: Path) -> None:
    """Remove what an interrupted call has staged, of this backup or another one.

    Its key is put back first.
    """
    if (coming / SIGNING_KEY_FILE).exists() and not (target / SIGNING_KEY_FILE).exists():
        target.mkdir(mode=0o700, exist_ok=True)
        (coming / SIGNING_KEY_FILE).rename(target / SIGNING_KEY_FILE)
        os.sync()
    shutil.rmtree(coming, ignore_errors=True)


def _stage(settings: BackendSettings, folder: Path, staging: Path) -> Path:
    """Copy a backup to a temporary folder that becomes the data folder, and check it there."""
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(mode=0o700, parents=True)
    for path in _files_in(folder, None):
        _copy_file(path, staging / path.relative_to(folder))
    check_backup(settings, staging)
    (staging / FACTS_FILE).unlink()
    os.sync()
    return staging


def _write_facts(settings: BackendSettings, folder: Path) -> None:
    engine = "postgresql" if _sqlite_file(settings) is None else "sqlite"
    facts = BackupFacts(made_at=datetime.now(UTC), database=engine)
    write_durably(folder / FACTS_FILE, facts.model_dump_json(indent=2).encode())


def _sqlite_file(settings: BackendSettings) -> Path | None:
    """The database's file; None for another engine."""
    url = make_url(settings.database_url)
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def _place_within(database: Path, data_dir: Path) -> Path | None:
    """The database's path within the data folder, by paths as written, else with links resolved.

    None if it is outside.
    """
    for path_of in (os.path.abspath, os.path.realpath):
        file, folder = Path(path_of(database)), Path(path_of(data_dir))
        if file.is_relative_to(folder):
            return file.relative_to(folder)
    return None


def _place_of(database: Path, data_dir: Path) -> Path:
    """The database's path within a backup: as in the data folder, or at the top."""
    return _place_within(database, data_dir) or Path(database.name)


def _snapshot(database: Path, part: Path) -> Path:
    """Copy the database at one moment, while others may write to it."""
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


def _require_intact(database: Path) -> None:
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as open_database:
            (found,) = open_database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as broken:
        raise BackupRefused(f"The database {database} can't be read: {in_words(broken)}.") from broken
    if found != "ok":
        raise BackupRefused(f"The database {database} is damaged: {found}.")


def _files_in(folder: Path, database: Path | None) -> list[Path]:
    """The files that a backup of the folder contains, except the database and its logs."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if not any(fnmatch(path.name, pattern) for pattern in LEFT_OUT):
            found += [each for each in (files_below(path) if path.is_dir() else (path,)) if each.is_file()]
    found = [path for path in found if not path.name.endswith(UNFINISHED) and not path.is_symlink()]
    return found if database is None else _without(database, found, folder)


def _without(database: Path, found: list[Path], folder: Path) -> list[Path]:
    """Files that don't belong to the database, neither at its place nor at its place in a backup."""
    at, its_place = database.resolve().parent, (folder / _place_of(database, folder)).parent
    named = {path for path in found if _is_of_database(path, database)}
    its = {path for path in named if path.parent.resolve() == at or path.parent == its_place}
    return [path for path in found if path not in its]


def _is_of_database(path: Path, database: Path) -> bool:
    """Whether a file has the name of the database, of its logs, or of a file stored next to it."""
    return path.name == database.name or path.name.startswith((f"{database.name}-", f"{database.name}."))


def _copy_file(source: Path, target: Path, *, anew: bool = False) -> None:
    """Copy a file whole or not at all; a file removed meanwhile is skipped.

    anew: copy it even if there is one of the same size and time, which otherwise counts as unchanged.
    """
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
    """The newest release of a database, None for PostgreSQL, after checking all its files in the backup.

    Raises BackupRefused.
    """
    read_only = "mode=ro&immutable=1&uri=true"
    url = settings.database_url if database is None else f"sqlite:///file:{database}?{read_only}"
    engine = create_engine(url)
    manifest: ReleaseManifest | None = None
    try:
        kept = max(settings.releases_kept, settings.releases_answered)
        # An external storage needs its own backup. Its completeness is checked here too, without this machine's copies,
        # which would hide what the storage lacks and fill a restored folder.
        here = folder / settings.blob_dir.relative_to(settings.data_dir)
        blobs = LocalFolder(here) if settings.storage is None else settings.open_storage().under("blobs")
        reader = ReleaseReader(engine, blobs, kept=kept)
        manifests, stored, checked = reader.kept(), BlobStore(blobs), set[str]()
        for manifest in manifests:
            for sha256 in {ref.sha256 for ref in blob_refs(manifest)} - checked:
                stored.require(sha256)
                checked.add(sha256)
    except (UnknownBlob, BlobDamaged) as missing:
        raise PartMissing(folder, "" if manifest is None else manifest.release, missing) from missing
    except SQLAlchemyError as broken:
        raise BackupRefused(f"The database that belongs to {folder} can't be read: {broken}") from broken
    finally:
        engine.dispose()
    return manifests[0].release if manifests else None
