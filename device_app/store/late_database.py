"""A database that exists only once something was put into it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from device_app.store.database import Database, Remedy, no_remedy


class LateDatabase:
    """Reads as empty while its file is missing; the first transaction makes it.

    A view of a reader who never uses it costs neither a file nor the time of its migrations, of which a fleet of
    thousands would pay thousands. Raises StoreBroken as `Database` does, when it opens the file.
    """

    def __init__(self, path: Path, migrations: Path, remedy: Remedy = no_remedy) -> None:
        self.path = path
        self._remedy = remedy
        self._migrations = migrations
        self._lock = RLock()
        self._opened: Database | None = None

    def known(self) -> Database | None:
        """The database, or None while nothing was ever put into it."""
        with self._lock:
            return self._open() if self._opened is not None or self.path.exists() else None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """As `Database.transaction`."""
        with self._lock:
            database = self._open()
        with database.transaction():
            yield

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query; none without a file."""
        database = self.known()
        return database.rows(sql, values) if database is not None else []

    def row(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of a query, or None."""
        database = self.known()
        return database.row(sql, values) if database is not None else None

    def write(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run one statement; call it inside a transaction."""
        return self._open().write(sql, values)

    def erase(self) -> None:
        """Delete all rows, overwrite them and give the space back."""
        database = self.known()
        if database is not None:
            database.erase()

    def fold(self) -> None:
        """As `Database.fold`."""
        database = self.known()
        if database is not None:
            database.fold()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _open(self) -> Database:
        with self._lock:
            if self._opened is None:
                self._opened = Database(self.path, self._migrations, self._remedy)
            return self._opened
