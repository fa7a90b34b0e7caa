"""Opens the database (SQLite in WAL mode by default, PostgreSQL by URL) and brings it to the newest revision.

DatabaseError
├── DatabaseUnsupported    the URL names an engine other than SQLite or PostgreSQL
├── DatabaseBusy           all connections that this process may open are in use
├── DatabaseUnreachable    it can't be opened, nothing answers at its address, or it went away in the middle
├── DatabaseDamaged        the file of an SQLite database is not what was written
└── DatabaseTooNew         a newer Ownfeed has migrated it, and this one doesn't run on what it made
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

from backend.db.base import ValueUnreadable
from backend.db.driver import ask_sqlite
from backend.db.schema_readers import note_readers, reads_newer
from backend.errors import DiskFull, OwnfeedError, Unavailable


class DatabaseError(OwnfeedError):
    """Base of the errors of the database; the message is one plain sentence."""

    code, status, title = "database-refused", 500, "The database can't be used"


class DatabaseUnsupported(DatabaseError):
    """The URL is no database URL, or names another engine."""

    code, status, title = "database-unsupported", 500, "The database is of another kind"

    def __init__(self, url: str) -> None:
        super().__init__(f"database_url {url!r} is neither sqlite:///path nor postgresql://user@host/name.")


class DatabaseUnreachable(DatabaseError, Unavailable):
    """The database did not open, or went away in the middle of a transaction, of which nothing is kept.

    Where it went away in the middle of a commit, all of the transaction may be kept.
    """

    code, status, title = "database-unreachable", 503, "The database does not answer"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"The database {url} can't be opened: {why}")


class DatabaseBusy(DatabaseError, Unavailable):
    """All connections of the pool were in use for CONNECTION_WAIT_SEC; nothing was begun."""

    code, status, title = "database-busy", 503, "The database has too much to do"

    def __init__(self) -> None:
        super().__init__("All connections to the database are in use, and none came free in time.")


class DatabaseDamaged(DatabaseError, Unavailable):
    """The file of an SQLite database is no such file any more, or parts of it aren't. Nothing goes on until a backup is
    put back, and then everything does."""

    code, status, title = "database-damaged", 503, "The database is damaged"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"The database {url} is damaged: {why}. Put a backup back; docs/operate.md says how.")


class DatabaseTooNew(DatabaseError):
    """The database's revision is unknown to this version."""

    code, status, title = "database-too-new", 500, "A newer Ownfeed has used the database"

    def __init__(self, url: str, revision: str, newest: str) -> None:
        super().__init__(
            f"The database {url} is at revision {revision!r} of a newer Ownfeed; this one knows revisions up to "
            f"{newest!r} and doesn't run on it. Nothing was changed: start the newer one, or put a backup back."
        )


DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
AWAY = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
)  # fmt: skip
"""Of SQLite's errors: another writer has kept the file too long, or its disk is full, fails or is read-only."""
UNDECODED = "Could not decode to UTF-8"
"""What Python's driver says of a text that is none."""
DISK_FULL, STOPPING = "53100", ("57P", "08")
"""Of PostgreSQL's states: no room; the server is going down or isn't up yet, or the connection is lost."""
BUSY_TIMEOUT_MS = 30_000
ASK_AGAIN_SEC = 0.01
CACHE_KIB = 1_024
"""Of pages, for each SQLite connection: what is read beyond it the system has in its own cache, once for all."""
CONNECTIONS, CONNECTIONS_KEPT = 15, 5
"""Open at a time where nobody says otherwise, and how many of them stay open unused."""
CONNECTION_WAIT_SEC = 10.0
"""A thread waits so long for one of the others to give a connection back: less than a device waits for an answer."""
MIGRATION_LOCK = 0x6F776E66
"""Key of the PostgreSQL advisory lock: two processes that start together migrate one after the other."""

_OPEN: dict[Path, WeakSet[ConnectionPoolEntry]] = {}
"""Places for connections in the pools of this process, by SQLite file."""


def open_engine(url: str, connections: int = CONNECTIONS, wait_sec: float = CONNECTION_WAIT_SEC) -> Engine:
    """The engine of a `sqlite:///path` or `postgresql://...` URL (psycopg 3); nothing is connected yet.

    connections: open at a time, of all threads. A thread that has waited wait_sec for one gets DatabaseBusy from
    `reading` and `writing`. Raises DatabaseUnsupported on any other URL.
    """
    kept = min(CONNECTIONS_KEPT, connections)
    pool: dict[str, Any] = {"pool_size": kept, "max_overflow": connections - kept, "pool_timeout": wait_sec}
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # the second: of a port that is no number
        raise DatabaseUnsupported(_password_hidden(url)) from error
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True, **pool)
    if backend != "sqlite" or not parsed.database:  # without a file SQLite would keep everything in memory, and lose it
        raise DatabaseUnsupported(parsed.render_as_string(hide_password=True))
    pool["json_deserializer"] = _read_json
    # The connection that was used last has in its cache what the next wants; by turns each would fill one of its own.
    engine = create_engine(parsed.set(drivername="sqlite"), poolclass=QueuePool, pool_use_lifo=True, **pool)
    open_here = _OPEN.setdefault(Path(parsed.database).resolve(), WeakSet())
    event.listen(engine, "connect", lambda _, entry: open_here.add(entry))  # before the next, which takes locks
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def is_open_here(path: Path) -> bool:
    """Whether this process has connections to an SQLite file, by `open_engine`.

    POSIX ends all locks of a process on a file when any descriptor of it is closed. Who opened such a file besides and
    closed it would have another process take itself for the last that has it, and delete the log under this one.
    """
    return any(entry.dbapi_connection is not None for entry in _OPEN.get(path.resolve(), ()))


def _password_hidden(url: str) -> str:
    """A URL that can't be read, without what may be a password: from the first : after the scheme to the last @."""
    return re.sub(r"(://[^:@/]*):.*@", r"\1:***@", url)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection in one read transaction: everything read in it is of one moment."""
    with _connected(engine, writes=False) as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection in one write transaction: committed at the end, rolled back whole on any exception.

    On SQLite the write lock is taken at the start (BEGIN IMMEDIATE): a read transaction that turned into a write
    one would fail instead of waiting its turn.
    """
    with _connected(engine, writes=True) as connection:
        yield connection


def empty_cache(connection: Connection) -> None:
    """Free what the connection has cached of the database, after a transaction that has read much once."""
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
    """Runs every missing migration in one transaction, all or none, and returns the revision reached.

    A database of a newer version, on which this one still runs (`schema_readers`), is left as it is. Raises
    DatabaseUnreachable, or DatabaseTooNew for one on which it doesn't; neither changes anything.
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
        told_of_absence(engine),
        connected(engine).execution_options(ownfeed_writes=writes, **options) as connection,
        connection.begin(),
    ):
        yield connection


def connected(engine: Engine) -> Connection:
    """A connection of the pool's. Raises DatabaseUnreachable or DatabaseBusy."""
    try:
        return engine.connect()
    except PoolTimeout as error:
        raise DatabaseBusy from error
    except DBAPIError as error:
        kind = DatabaseDamaged if _sqlite_code(error) in DAMAGED else DatabaseUnreachable
        raise kind(str(engine.url), _words(error)) from error


@contextmanager
def told_of_absence(engine: Engine) -> Iterator[None]:
    """Raises DatabaseDamaged, DatabaseUnreachable or DiskFull for what says that the database is damaged, is away or
    stops, or has no room."""
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
    """The first byte of SQLite's error code; 0 of other engines."""
    return int(getattr(error.orig, "sqlite_errorcode", 0)) & 0xFF


def _words(error: DBAPIError) -> str:
    return in_words(error.orig) if isinstance(error.orig, sqlite3.Error) else str(error.orig).strip()


def in_words(error: sqlite3.Error) -> str:
    """What SQLite says, and what it leaves out: also where there is no room for the file by which its processes share
    their log it says no more than "disk I/O error". The name of the call that failed tells one such cause from another.
    """
    if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_IOERR:
        return str(error).strip()
    return f"{error} ({error.sqlite_errorname}); the disk is full or failing"


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as broken:
        raise ValueUnreadable("what should be JSON in it isn't") from broken


def _isolation(engine: Engine, *, writes: bool) -> dict[str, Any]:
    # A snapshot for readers, as SQLite's WAL gives; writers read what the last writer committed.
    if engine.dialect.name == "postgresql" and not writes:
        return {"isolation_level": "REPEATABLE READ"}
    return {}


def _prepare_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    raw = connection
    assert isinstance(raw, sqlite3.Connection)
    # Off: the driver would begin transactions itself, and only before writes.
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
    """Set a pragma. SQLite doesn't wait while another connection changes a new file to WAL, so it is asked again.

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
            newest = directory.get_current_head() or ""
            if reads_newer(connection, newest):
                return found
            raise DatabaseTooNew(str(engine.url), found, newest)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        note_readers(connection, directory)
        reached = _revision(connection)
    assert reached is not None
    return reached


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


@contextmanager
def reading_session(engine: Engine) -> Iterator[Session]:
    """A session whose reads are all of one moment."""
    with reading(engine) as connection, Session(connection) as session:
        yield session


@contextmanager
def writing_session(engine: Engine) -> Iterator[Session]:
    """A session that is the only writer on SQLite: committed whole at the end, or rolled back whole."""
    with writing(engine) as connection, Session(connection) as session:
        yield session
        session.flush()
