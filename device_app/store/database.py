"""Open and migrate the device's SQLite databases, and write in safe transactions.

A crash never leaves half a transaction. `LazyDatabase` creates its file only when something is first written to it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Self
from urllib.parse import quote

from device_app.errors import StoreBroken, StoreDamaged
from protocol.private_files import make_file, make_folder, overwrite

MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_TIMEOUT_SEC = 5.0
MIGRATION_WAIT_SEC = 30.0
_MIGRATING = Lock()
_NEW: dict[tuple[Path, frozenset[str]], bytes] = {}
"""Bytes of new databases, by the migrations that made them: writing them is fifty times faster than migrating."""
PAGE_CACHE_KIB = 4096
_KEPT_BY_ERASE = frozenset(
    {"charge", "pinned_key", "release", "encoder", "view_round", "report_meaning", "release_chain", "round_upload"}
)
LOGS = "-wal", "-shm", "-journal"
"""Suffixes of SQLite's own files next to a database."""
EMPTY = "the file is there and is empty, where a database was kept"
NOT_OURS = "the file is there but contains no Ownfeed data, where a database should be"
TOO_OLD = (
    "an Ownfeed before 0.2.0 wrote it, which this one can't read, and it is unchanged. Use that version again, or move "
    "the profile's folder away: that begins a new profile, which knows nothing of what was read or spent"
)
UNREADABLE = "file is not a database", "database disk image is malformed"
Remedy = Callable[[], str]
"""Returns whole sentences that say what the reader can do about a damaged database."""


def no_remedy() -> str:
    """Return no remedy, for a database without copies."""
    return "Keep the file, it may be mended."


class Database:
    """The device's own database, used from many threads through one connection and one lock.

    WAL: when `transaction()` has ended, with synchronous=FULL, the rows survive a kill and a power cut.
    `quick_transaction()` leaves out the wait for the disk: its rows survive a kill of the process; a power cut may lose
    the last transactions, but never part of one. Deleted rows are overwritten (secure_delete); the log contains them
    until `fold`.

    Raises StoreBroken if the file can't be opened or written or was written by a newer version, and StoreDamaged if it
    is empty, damaged or not a database, when it is opened or at any later time.
    """

    def __init__(
        self,
        path: Path,
        migrations: Path | None = None,
        remedy: Remedy = no_remedy,
        page_cache_kib: int = PAGE_CACHE_KIB,
    ) -> None:
        """Open the file and migrate it, by default with the migrations of the device's own store.

        page_cache_kib: maximum size of the file's cache in memory; it fills within hours, as pages are read.
        """
        self.remedy = remedy
        self._page_cache_kib = page_cache_kib
        self._open(path, migrations or MIGRATIONS)

    @classmethod
    def of_another(cls, path: Path) -> Self:
        """Open a file that another process created and has open.

        Nothing is migrated and no other file is touched.
        """
        opened = cls.__new__(cls)
        opened.remedy = no_remedy
        opened._page_cache_kib = PAGE_CACHE_KIB
        opened._open(path, None)
        return opened

    def _open(self, path: Path, migrations: Path | None) -> None:
        self.path = path
        self._lock = RLock()
        self._depth = 0
        self._quick = False
        self._undone: list[Callable[[], None]] = []
        self._is_unfolded = False
        try:
            log = path.with_name(f"{path.name}-wal")
            is_left = False
            with suppress(FileNotFoundError):  # another process may fold it at this moment
                is_left = migrations is not None and log.stat().st_size > 0
            if migrations is not None:
                make_folder(path.parent)
                try:
                    _migrate(path, migrations)
                except StoreDamaged as damaged:
                    raise StoreDamaged(path, damaged.why, self.remedy()) from None
            self._connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_SEC, isolation_level=None, check_same_thread=False, cached_statements=256
            )
        except (sqlite3.Error, OSError) as broken:
            raise store_error(path, broken, self.remedy) from broken
        try:
            for pragma in (
                "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "secure_delete=ON",
                f"cache_size=-{self._page_cache_kib}", "temp_store=MEMORY",
            ):  # fmt: skip
                self._connection.execute(f"PRAGMA {pragma}")
            if is_left:
                # What was killed between a deletion and `fold` has left what was deleted there, such as keys of a sum.
                self.fold()
        except StoreBroken:
            self._connection.close()
            raise
        except sqlite3.Error as broken:
            self._connection.close()
            raise store_error(path, broken, self.remedy) from broken

    def close(self) -> None:
        """Fold the log into the file and close it."""
        with self._lock:
            if self._is_unfolded:
                with suppress(StoreBroken):  # the next start tries again
                    self.fold()
            self._connection.close()

    def check(self) -> None:
        """Check every page of the file. Raises StoreDamaged, naming the first fault."""
        (found,) = self.row("PRAGMA quick_check(1)") or ("nothing could be checked",)
        if found != "ok":
            raise StoreDamaged(self.path, f"a part of it is damaged ({' '.join(found.split())})", self.remedy())

    def known(self) -> Database:
        """Return this database, which always exists, unlike that of a `LazyDatabase`."""
        return self

    def when_undone(self, forget: Callable[[], None]) -> None:
        """Call `forget` whenever written rows are undone: after a rollback and in `erase`.

        It is for callers that cache what they wrote. `forget` is called under the lock and must not write.
        """
        self._undone.append(forget)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make several reads consistent: no other thread of this device writes between them."""
        with self._lock:
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction: BEGIN IMMEDIATE ... COMMIT, or ROLLBACK if the block raises.

        Nested blocks join the outer one.

        Raises RuntimeError inside a quick transaction, whose end would not wait for the disk.
        """
        with self._lock:
            if self._quick:
                raise RuntimeError("a write that must reach the disk can't be nested in a quick transaction")
            if self._depth:
                yield
                return
            self._run("PRAGMA synchronous=FULL")
            try:
                with self._begun():
                    yield
            finally:
                self._connection.execute("PRAGMA synchronous=NORMAL")

    @contextmanager
    def quick_transaction(self) -> Iterator[None]:
        """Like `transaction`, without waiting for the disk at the end.

        Inside another transaction it joins that one.
        """
        with self._lock:
            if self._depth:
                yield
                return
            self._quick = True
            try:
                with self._begun():
                    yield
            finally:
                self._quick = False

    @contextmanager
    def _begun(self) -> Iterator[None]:
        self._run("BEGIN IMMEDIATE")
        self._depth, written = 1, self._connection.total_changes
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if self._connection.total_changes != written:  # not for one that was refused first, as for want of budget
                self._forget_all()
            raise
        finally:
            self._depth = 0

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self._store_errors():
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row of a query, or None."""
        with self._lock, self._store_errors():
            found: tuple[Any, ...] | None = self._connection.execute(sql, values).fetchone()
            return found

    def number(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Return the first column of the first row, such as a count."""
        found = self.row(sql, values)
        return int(found[0]) if found and found[0] is not None else 0

    def write(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Cursor:
        """Run one statement; call it inside a transaction."""
        with self._lock:
            if not self._depth:
                raise RuntimeError("write needs a transaction around it")
            return self._run(sql, values)

    def write_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._lock:
            if not self._depth:
                raise RuntimeError("write_many needs a transaction around it")
            with self._store_errors():
                self._connection.executemany(sql, rows)

    def erase(self, keep: Callable[[], None] = lambda: None) -> None:
        """Delete everything that this device knows about its reader, overwrite it and free the space.

        Kept: the charges of the ledger without their subjects (otherwise erasing would refill the budget for data that
        the backend already has), the pinned key and the releases, which say nothing about the reader. keep: writes
        further rows that must remain, in the same transaction as the deletion.
        """
        with self._lock:
            with self.transaction():
                # An FTS index is emptied by its own name; its shadow tables must not be written directly.
                kinds = (
                    "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')"
                )
                for table, kind in self.rows(kinds):
                    if table.startswith(("_yoyo", "yoyo", "sqlite_")) or table in _KEPT_BY_ERASE:
                        continue
                    self.write(f"DELETE FROM {table}")
                    self.write("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
                    if kind == "virtual":  # an index keeps the words of deleted rows until it is built again
                        self.write(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
                if self.row("SELECT 1 FROM sqlite_schema WHERE name = 'charge'"):
                    self.write("UPDATE charge SET subject = '', payload_sha256 = ''")
                    self.write("UPDATE round_upload SET payload_sha256 = ''")
                keep()
            self._forget_all()
            self._run("VACUUM")
            self.fold()

    def fold(self) -> None:
        """Write the write-ahead log into the file and empty it.

        Afterwards neither contains a byte of deleted or overwritten rows. If another process reads the file for longer
        than BUSY_TIMEOUT_SEC, the log stays until the next call, at the latest when the store is closed or opened
        again.
        """
        self._is_unfolded = bool(self.number("PRAGMA wal_checkpoint(TRUNCATE)"))

    def _forget_all(self) -> None:
        for forget in self._undone:
            forget()

    def _run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Cursor:
        with self._store_errors():
            return self._connection.execute(sql, values)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Raise StoreBroken for SQLite's errors about a file that can't be read or written."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as broken:
            raise store_error(self.path, broken, self.remedy) from broken
        except sqlite3.DatabaseError as broken:
            if unreadable(broken):
                raise store_error(self.path, broken, self.remedy) from broken
            raise


def draft_of(path: Path) -> Path:
    """Return the path where a database or a copy is written before it is moved into place."""
    return path.with_name(path.name + ".part")


def overwrite_draft(path: Path) -> None:
    """Overwrite and remove a draft left by a kill, since it may hold all the database's data.

    Raises OSError.
    """
    draft = draft_of(path)
    for ending in ("", *LOGS):
        overwrite(draft.with_name(draft.name + ending))


def forget_draft(path: Path) -> None:
    """Like `overwrite_draft`, while another thread may be creating the database.

    Raises OSError, sqlite3.Error.
    """
    draft = draft_of(path)
    if any(draft.with_name(draft.name + ending).exists() for ending in ("", *LOGS)):
        with _alone(path):
            overwrite_draft(path)


def _migrate(path: Path, migrations: Path) -> None:
    """Migrate the file to the newest version with yoyo; unchanged if it is already there."""
    known = {file.stem for file in migrations.glob("*.sql")}
    if not known:
        raise StoreBroken(path, f"the migrations are missing from this installation ({migrations.name})")
    if not path.exists():
        with _alone(path):
            if not path.exists():
                _create(path, migrations, frozenset(known))
    elif path.stat().st_size == 0:
        raise StoreDamaged(path, EMPTY)
    applied = applied_to(path)
    if not applied:  # a new database is named only when complete, so this isn't ours
        raise StoreDamaged(path, NOT_OURS)
    if min(known) not in applied:
        raise StoreBroken(path, TOO_OLD)
    if newer := sorted(applied - known):
        why = f"a newer version of Ownfeed wrote it (migration {newer[0]}; this one knows up to {max(known)})"
        raise StoreBroken(path, f"{why}; the database was not changed")
    if applied == known:
        return
    with _alone(path):
        _run_yoyo(path, migrations)
    if missing := sorted(known - applied_to(path)):
        raise StoreBroken(path, f"migration {missing[0]} could not be run")


def _create(path: Path, migrations: Path, known: frozenset[str]) -> None:
    """Create a new database under a draft name.

    So a file under its final name is always complete.
    """
    overwrite_draft(path)
    draft = draft_of(path)
    make_file(draft)
    if (migrations, known) in _NEW:
        draft.write_bytes(_NEW[migrations, known])
    else:
        _run_yoyo(draft, migrations, durable=False)  # a draft that a kill or a power cut leaves is thrown away
        _NEW[migrations, known] = draft.read_bytes()
    with draft.open("rb") as written:
        os.fsync(written.fileno())
    draft.replace(path)


def _run_yoyo(path: Path, migrations: Path, *, durable: bool = True) -> None:
    # yoyo takes 0.15 s to import, so only a device that needs a migration pays for it.
    from yoyo import get_backend, read_migrations

    with get_backend("sqlite:///" + quote(str(path.resolve()))) as backend:
        if not durable:
            backend.execute("PRAGMA synchronous=OFF")
        backend.apply_migrations(backend.to_apply(read_migrations(str(migrations))))


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let only one process, and one of its threads, migrate at a time.

    The lock is a separate database, because yoyo's own lock is a row that stays behind when its process is killed.
    """
    with _MIGRATING:
        beside = path.with_name(path.name + ".lock")
        make_file(beside)
        lock = sqlite3.connect(beside, timeout=MIGRATION_WAIT_SEC, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
            yield
        finally:
            lock.close()


def applied_to(path: Path) -> set[str]:
    """Return names of the migrations that a file has; none for a database that isn't ours.

    Raises sqlite3.Error.
    """
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SEC)
    try:
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = '_yoyo_migration'").fetchone():
            return set()
        return {row[0] for row in connection.execute("SELECT migration_id FROM _yoyo_migration")}
    finally:
        connection.close()


def store_error(path: Path, broken: Exception, remedy: Remedy = no_remedy) -> StoreBroken:
    """Return the device's error for a failure of SQLite or of the disk.

    It is StoreDamaged if the file itself is damaged.
    """
    if unreadable(broken):
        return StoreDamaged(path, f"it is damaged ({broken})", remedy())
    return StoreBroken(path, _plain(broken))


def unreadable(broken: Exception) -> bool:
    """Return whether an error means that the file itself is damaged or not a database."""
    return any(words in str(broken) for words in UNREADABLE)


def _plain(broken: Exception) -> str:
    words = str(broken)
    if "disk is full" in words or "disk I/O" in words:
        return f"the disk is full or failing ({words}); nothing of this step was kept, all before it was"
    if "readonly" in words:
        return f"it can't be written ({words}); check the permissions of the file and its folder"
    return words


class LazyDatabase:
    """A database that reads as empty while its file is missing.

    The first transaction creates it. A view that its reader never uses then costs neither a file nor the time of its
    migrations, which adds up in a fleet of thousands. Raises StoreBroken like `Database` when it opens the file.
    """

    def __init__(self, path: Path, migrations: Path, remedy: Remedy = no_remedy) -> None:
        self.path = path
        self._remedy = remedy
        self._migrations = migrations
        self._lock = RLock()
        self._opened: Database | None = None

    def known(self) -> Database | None:
        """Return the database, or None while nothing was ever written to it."""
        with self._lock:
            return self._open() if self._opened is not None or self.path.exists() else None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._lock:
            database = self._open()
        with database.transaction():
            yield

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query; none without a file."""
        database = self.known()
        return database.rows(sql, values) if database is not None else []

    def row(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row of a query, or None."""
        database = self.known()
        return database.row(sql, values) if database is not None else None

    def write(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run one statement; call it inside a transaction."""
        return self._open().write(sql, values)

    def erase(self) -> None:
        """Delete all rows, overwrite them and free the space."""
        database = self.known()
        if database is not None:
            database.erase()

    def fold(self) -> None:
        database = self.known()
        if database is not None:
            database.fold()

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _open(self) -> Database:
        with self._lock:
            if self._opened is None:
                self._opened = Database(self.path, self._migrations, self._remedy)
            return self._opened
