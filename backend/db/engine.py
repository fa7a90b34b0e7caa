"""Opens the database and migrates it to the newest revision.

SQLite in WAL mode is the default; PostgreSQL is chosen by URL.

Before an SQLite file is opened, its head and length are checked, which detects another file or a truncated one without
reading it completely.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from weakref import WeakSet

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from backend.db.statements import ask_sqlite
from backend.db.tables import ValueUnreadable
from backend.errors import DiskFull, OwnfeedError, Unavailable

MAGIC, HEAD_BYTES = b"SQLite format 3\x00", 100


def check_sqlite_file(url: str, *, used: bool) -> None:
    """Raise DatabaseDamaged for another file, a truncated one, or an empty one that should have content.

    used: whether anything else shows that the database had content; without it, an empty file is accepted, since a
    killed first start leaves one. SQLite itself checks the log beside the file and the content of the pages.
    """
    parsed = make_url(url)
    path = Path(parsed.database or "")
    if parsed.get_backend_name() != "sqlite" or not path.is_file():
        return
    if is_open_here(path):
        return  # closing the file would release these connections' locks; a server checks before it opens any
    log = path.with_name(f"{path.name}-wal")
    # Checked before the file: another process that copies pages from there meanwhile writes the head first.
    if log.is_file() and log.stat().st_size:
        return  # newer pages of the file may be there
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    size = path.stat().st_size
    if not size:
        if used:
            raise DatabaseDamaged(url, "it is empty, although releases were published from it")
        return
    if len(head) < HEAD_BYTES or not head.startswith(MAGIC):
        raise DatabaseDamaged(url, "it is not an SQLite database")
    # File format, section 1.3: the size of a page, and the number of pages.
    page_bytes = int.from_bytes(head[16:18], "big")
    pages, is_current = int.from_bytes(head[28:32], "big"), head[24:28] == head[92:96]
    expected = pages * (65_536 if page_bytes == 1 else page_bytes)
    if is_current and size < expected:
        raise DatabaseDamaged(url, f"it is cut off after {size:,} of {expected:,} bytes")


class DatabaseError(OwnfeedError):
    """Base class of the errors of the database; the message is one plain sentence."""

    code, status, title = "database-refused", 500, "The database can't be used"


class DatabaseUnsupported(DatabaseError):
    """The URL is not a database URL, or names another engine."""

    code, status, title = "database-unsupported", 500, "This kind of database is not supported"

    def __init__(self, url: str) -> None:
        super().__init__(f"database_url {url!r} is neither sqlite:///path nor postgresql://user@host/name.")


class DatabaseUnreachable(DatabaseError, Unavailable):
    """The database did not open, or was lost during a transaction, which was rolled back.

    If it was lost during a commit, the whole transaction may have been kept.
    """

    code, status, title = "database-unreachable", 503, "The database does not answer"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"The database {url} can't be opened: {why}")


class DatabaseBusy(DatabaseError, Unavailable):
    """All connections of the pool were in use for CONNECTION_WAIT_SEC; nothing was started."""

    code, status, title = "database-busy", 503, "The database has too much to do"

    def __init__(self) -> None:
        super().__init__("All connections to the database are in use, and none became free in time.")


class DatabaseDamaged(DatabaseError, Unavailable):
    """The SQLite file, or a part of it, is damaged; everything fails until a backup is restored."""

    code, status, title = "database-damaged", 503, "The database is damaged"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"The database {url} is damaged: {why}. Put a backup back; docs/operate.md says how.")


class DatabaseTooNew(DatabaseError):
    """The database's revision is unknown to this version, and newer than those it knows."""

    code, status, title = "database-too-new", 500, "The database was used by a newer version of Ownfeed"

    def __init__(self, url: str, revision: str, newest: str) -> None:
        super().__init__(
            f"The database {url} is at revision {revision!r} of a newer Ownfeed; this one knows revisions up to "
            f"{newest!r}. Nothing was changed: start the newer one, or put a backup back."
        )


class DatabaseTooOld(DatabaseError):
    """A version before 0.2.0 created the database; no migration leads to this version."""

    code, status, title = "database-too-old", 500, "An Ownfeed before 0.2.0 has made the database"

    def __init__(self, url: str, revision: str) -> None:
        super().__init__(
            f"The database {url} is of an Ownfeed before 0.2.0 (revision {revision!r}), which this one can't read. "
            "Nothing was changed: start that version again, or name an empty data_dir and database_url."
        )


DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
AWAY = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
)  # fmt: skip
"""SQLite's errors for an unavailable database: another writer holds the file too long, or its disk is full, fails or is
read-only."""
UNDECODED = "Could not decode to UTF-8"
"""Message of Python's driver for a text that is not UTF-8."""
DISK_FULL, STOPPING = "53100", ("57P", "08")
"""PostgreSQL's states: disk full; and server stopping or starting, or connection lost."""
BUSY_TIMEOUT_MS = 30_000
ASK_AGAIN_SEC = 0.01
CACHE_KIB = 1_024
"""Page cache of each SQLite connection: the system caches what is read beyond it, once for all connections."""
CONNECTIONS, CONNECTIONS_KEPT = 15, 5
"""Default limit of open connections, and how many stay open while unused."""
CONNECTION_WAIT_SEC = 10.0
"""How long a thread waits for a free connection: less than a device waits for an answer."""
MIGRATION_LOCK = 0x6F776E66
"""Key of the PostgreSQL advisory lock: two processes that start together migrate in turn."""

NUMBERED = re.compile(r"\d{4}_")
"""How revision names have begun since 0.2.0; before, they had no number."""

_OPEN: dict[Path, WeakSet[ConnectionPoolEntry]] = {}
"""Connections in this process's pools, by SQLite file."""


def open_engine(url: str, connections: int = CONNECTIONS, wait_sec: float = CONNECTION_WAIT_SEC) -> Engine:
    """Create the engine of a `sqlite:///path` or `postgresql://...` URL (psycopg 3).

    Nothing is connected yet.

    connections: limit for all threads together. A thread that has waited wait_sec for one gets DatabaseBusy from
    `reading` and `writing`. Raises DatabaseUnsupported on any other URL.
    """
    kept = min(CONNECTIONS_KEPT, connections)
    pool: dict[str, Any] = {"pool_size": kept, "max_overflow": connections - kept, "pool_timeout": wait_sec}
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # ValueError: the port is not a number
        raise DatabaseUnsupported(_password_hidden(url)) from error
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True, **pool)
    if backend != "sqlite" or not parsed.database:  # without a file SQLite would keep everything in memory only
        raise DatabaseUnsupported(parsed.render_as_string(hide_password=True))
    pool["json_deserializer"] = _read_json
    # LIFO: the connection used last has in its cache what the next request wants; in rotation, each would fill its own.
    engine = create_engine(parsed.set(drivername="sqlite"), poolclass=QueuePool, pool_use_lifo=True, **pool)
    open_here = _OPEN.setdefault(Path(parsed.database).resolve(), WeakSet())
    # registered before the next listener, which takes locks
    event.listen(engine, "connect", lambda _, entry: open_here.add(entry))
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def is_open_here(path: Path) -> bool:
    """Whether this process has connections to an SQLite file, opened by `open_engine`.

    POSIX releases all locks of a process on a file when any descriptor of it is closed. If such a file were also opened
    and closed directly, another process could take itself for the last user and delete the log that this one uses.
    """
    return any(entry.dbapi_connection is not None for entry in _OPEN.get(path.resolve(), ()))


def _password_hidden(url: str) -> str:
    """A malformed URL without what may be a password: the part from the first : after the scheme to the last @."""
    return re.sub(r"(://[^:@/]*):.*@", r"\1:***@", url)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection in one read transaction: everything read in it is a consistent snapshot."""
    with _connected(engine, writes=False) as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection in one write transaction: committed at the end, rolled back completely on any exception.

    On SQLite the write lock is taken at the start (BEGIN IMMEDIATE): a read transaction that became a write transaction
    would fail instead of waiting.
    """
    with _connected(engine, writes=True) as connection:
        yield connection


def empty_cache(connection: Connection) -> None:
    """Free the connection's page cache after a transaction that has read much once."""
    if connection.dialect.name == "sqlite":
        ask_sqlite(connection, "PRAGMA shrink_memory")


def scripts() -> Path:
    """The folder of the migration scripts: `alembic/` in a checkout, `backend/db/alembic/` in a wheel."""
    package = Path(str(files("backend.db")))
    for folder in (package / "alembic", package.parents[1] / "alembic"):
        if (folder / "env.py").is_file():
            return folder
    raise FileNotFoundError(f"No Alembic scripts in {package / 'alembic'} nor in {package.parents[1] / 'alembic'}.")


def migrate(engine_or_url: Engine | str) -> str:
    """Run all missing migrations in one transaction, all or none, and return the revision reached.

    Raises DatabaseUnreachable, or DatabaseTooNew or DatabaseTooOld for a database of another series of versions; none
    of them changes anything.
    """
    if isinstance(engine_or_url, Engine):
        return _migrate(engine_or_url)
    engine = open_engine(engine_or_url)
    try:
        return _migrate(engine)
    finally:
        engine.dispose()


@contextmanager
def _connected(engine: Engine, *, writes: bool) -> Iterator[Connection]:
    options = _isolation(engine, writes=writes)
    with (
        translated_driver_errors(engine),
        connected(engine).execution_options(ownfeed_writes=writes, **options) as connection,
        connection.begin(),
    ):
        yield connection


def connected(engine: Engine) -> Connection:
    """Take a connection from the pool. Raises DatabaseUnreachable or DatabaseBusy."""
    try:
        return engine.connect()
    except PoolTimeout as error:
        raise DatabaseBusy from error
    except DBAPIError as error:
        kind = DatabaseDamaged if _sqlite_code(error) in DAMAGED else DatabaseUnreachable
        raise kind(str(engine.url), _words(error)) from error


@contextmanager
def translated_driver_errors(engine: Engine) -> Iterator[None]:
    """Convert driver errors to DatabaseDamaged, DatabaseUnreachable or DiskFull.

    They are raised if the database is damaged, is unavailable or stopping, or has no room.
    """
    try:
        yield
    except ValueUnreadable as broken:
        raise DatabaseDamaged(str(engine.url), str(broken)) from broken
    except DBAPIError as error:
        kind = _sqlite_code(error)
        state = str(getattr(error.orig, "sqlstate", None) or "")
        if kind in DAMAGED or UNDECODED in str(error.orig):
            raise DatabaseDamaged(str(engine.url), _words(error)) from error
        if kind == sqlite3.SQLITE_FULL or state == DISK_FULL:
            raise DiskFull(f"the database: {_words(error)}") from error
        if error.connection_invalidated or kind in AWAY or state.startswith(STOPPING):
            raise DatabaseUnreachable(str(engine.url), _words(error)) from error
        raise


def _sqlite_code(error: DBAPIError) -> int:
    """The first byte of SQLite's error code; 0 for other engines."""
    return int(getattr(error.orig, "sqlite_errorcode", 0)) & 0xFF


def _words(error: DBAPIError) -> str:
    return in_words(error.orig) if isinstance(error.orig, sqlite3.Error) else str(error.orig).strip()


def in_words(error: sqlite3.Error) -> str:
    """SQLite's message, and the cause that it leaves out.

    If there is no room for the file by which its processes share their log, SQLite also says only "disk I/O error". The
    name of the failed call distinguishes the causes.
    """
    if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_IOERR:
        return str(error).strip()
    return f"{error} ({error.sqlite_errorname}); the disk is full or failing"


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as broken:
        raise ValueUnreadable("it contains a value that is not valid JSON") from broken


def _isolation(engine: Engine, *, writes: bool) -> dict[str, Any]:
    # A snapshot for readers, as in SQLite's WAL mode; writers read what the last writer committed.
    if engine.dialect.name == "postgresql" and not writes:
        return {"isolation_level": "REPEATABLE READ"}
    return {}


def _prepare_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    raw = connection
    assert isinstance(raw, sqlite3.Connection)
    # Autocommit: the driver would begin transactions itself, and only before writes.
    raw.isolation_level = None
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
        f"cache_size = -{CACHE_KIB}",
    ):
        _set(raw, pragma)


def _set(raw: sqlite3.Connection, pragma: str) -> None:
    """Set a pragma, with retries, since SQLite doesn't wait while another connection switches a new file to WAL.

    Raises sqlite3.OperationalError after BUSY_TIMEOUT_MS.
    """
    give_up = time.monotonic() + BUSY_TIMEOUT_MS / 1_000
    while True:
        try:
            raw.execute(f"PRAGMA {pragma}").close()
            return
        except sqlite3.OperationalError as refused:
            locked = refused.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not locked or time.monotonic() >= give_up:
                raise
        time.sleep(ASK_AGAIN_SEC)


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("ownfeed_writes", False)
    ask_sqlite(connection, "BEGIN IMMEDIATE" if writes else "BEGIN")


def _migrate(engine: Engine) -> str:
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    directory = ScriptDirectory.from_config(config)
    known = {script.revision for script in directory.walk_revisions()}
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        found = _revision(connection)
        if found is not None and found not in known:
            if NUMBERED.match(found):
                raise DatabaseTooNew(str(engine.url), found, directory.get_current_head() or "")
            raise DatabaseTooOld(str(engine.url), found)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        reached = _revision(connection)
    assert reached is not None
    return reached


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


@contextmanager
def reading_session(engine: Engine) -> Iterator[Session]:
    """A session whose reads are one consistent snapshot."""
    with reading(engine) as connection, Session(connection) as session:
        yield session


@contextmanager
def writing_session(engine: Engine) -> Iterator[Session]:
    """A session that is the only writer on SQLite: committed completely at the end, or rolled back completely."""
    with writing(engine) as connection, Session(connection) as session:
        yield session
        session.flush()
