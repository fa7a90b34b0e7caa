"""SQLite's driver, asked directly in a transaction of SQLAlchemy's: a statement costs a fifth of what it does there.

What is asked often in a round goes this way (`db.prepared`); all else goes through SQLAlchemy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


@dataclass(frozen=True)
class StatementAnswer:
    """What a statement found, all of it: the names of its columns, and its rows; or how many rows it changed."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    rowcount: int

    def first(self) -> tuple[Any, ...] | None:
        """The first row, if there is one."""
        return self.rows[0] if self.rows else None

    def scalar(self) -> Any:
        """The first row's first value; None if there is none."""
        return self.rows[0][0] if self.rows else None

    def scalars(self) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self.rows]


def ask_sqlite(connection: Connection, text: str, given: Sequence[Any] = ()) -> StatementAnswer:
    """Execute a statement of SQLite's in the connection's transaction. Raises DBAPIError, as the connection itself."""
    raw = connection.connection.dbapi_connection
    assert isinstance(raw, sqlite3.Connection)
    try:
        cursor = raw.execute(text, tuple(given))
        columns = () if cursor.description is None else tuple(each[0] for each in cursor.description)
        found = StatementAnswer(columns, cursor.fetchall() if columns else (), cursor.rowcount)
        cursor.close()
    except sqlite3.Error as error:
        raise DBAPIError.instance(
            text, given, error, sqlite3.Error, hide_parameters=connection.engine.hide_parameters,
            dialect=connection.dialect,
        ) from error  # fmt: skip
    return found
