"""Fast statements for both engines: lists as parameters, direct use of SQLite's driver, and compilation once.

Long lists are split into chunks that both engines accept, or passed as one parameter. With SQLite's own driver, used
inside SQLAlchemy's transaction, a statement costs a fifth of the time. Statements that run many times per second in a
round are compiled once (`Prepared`); all others go through SQLAlchemy.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Dialect, Executable, any_, bindparam, func, literal, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import InstrumentedAttribute

PARAMETERS_PER_STATEMENT = 5_000
"""SQLite allows 32,766 parameters, PostgreSQL 65,535; longer lists gain nothing."""

T = TypeVar("T")


def chunks(values: Iterable[T], size: int = PARAMETERS_PER_STATEMENT) -> Iterator[list[T]]:
    """Split `values` into lists of at most `size`."""
    source = iter(values)
    while chunk := list(islice(source, size)):
        yield chunk


def among(connection: Connection, column: InstrumentedAttribute[T], values: Iterable[T]) -> ColumnElement[bool]:
    """Return `column IN (values)` with the list as one parameter: an array in PostgreSQL, a JSON text in SQLite.

    For lists of thousands: SQLAlchemy would take longer to render them than SQLite to look them up, and PostgreSQL
    compares a list of single parameters one by one with every row.
    """
    if connection.dialect.name == "postgresql":
        return column == any_(literal(list(values), ARRAY(column.type)))
    listed = func.json_each(json.dumps(list(values))).table_valued("value")
    return column.in_(select(listed.c.value))


@dataclass(frozen=True)
class StatementAnswer:
    """The complete result of a statement: column names and rows, or the number of changed rows."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    rowcount: int

    def first(self) -> tuple[Any, ...] | None:
        return self.rows[0] if self.rows else None

    def scalar(self) -> Any:
        """The first row's first value, or None."""
        return self.rows[0][0] if self.rows else None

    def scalars(self) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self.rows]


def ask_sqlite(connection: Connection, text: str, given: Sequence[Any] = ()) -> StatementAnswer:
    """Execute an SQLite statement in the connection's transaction.

    Raises DBAPIError, as the connection does.
    """
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


Make = Callable[[Dialect], Executable]


class Prepared:
    """A statement that is compiled at its first use and then passed to the driver as text.

    SQLAlchemy takes some 0.6 ms to build a statement and pass it through the ORM, .05 ms to pass on a text, and SQLite
    itself .01 ms, so its driver is called directly. Its parameters are those of `bindparam`, and for an INSERT all
    columns of the table. Values are passed unconverted: use it for texts, numbers and bytes, not for times. It doesn't
    see what a session has not flushed.

    Args:
        statement: the statement, or a function that makes it for a dialect, if the two engines' statements differ.
    """

    def __init__(self, statement: Executable | Make) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, list[str], dict[str, Any]]] = {}

    def run(self, connection: Connection, **values: Any) -> StatementAnswer:
        """Execute the statement in the connection's transaction. Raises KeyError for a missing value."""
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = self._compile(dialect)
        text, names, fixed = found
        given = [values[name] if name in values else fixed[name] for name in names]
        if dialect.name == "sqlite":
            return ask_sqlite(connection, text, given)
        answer = connection.exec_driver_sql(
            text, tuple(given) if dialect.positional else dict(zip(names, given, strict=True))
        )
        columns = tuple(answer.keys()) if answer.returns_rows else ()
        return StatementAnswer(columns, [tuple(row) for row in answer] if columns else [], answer.rowcount)

    def _compile(self, dialect: Dialect) -> tuple[str, list[str], dict[str, Any]]:
        statement: Any = self._statement
        if not isinstance(statement, Executable):
            statement = statement(dialect)
        compiled = statement.compile(dialect=dialect)
        fixed = {name: value for name, value in compiled.params.items() if value is not None}
        return str(compiled), compiled.positiontup or list(compiled.params), fixed


def listed(name: str, column: ColumnElement[Any]) -> Callable[[Dialect], ColumnElement[bool]]:
    """`column IN (...)` with the list as the one parameter `name`, which `as_list` makes."""

    def condition(dialect: Dialect) -> ColumnElement[bool]:
        if dialect.name == "postgresql":
            return column == any_(bindparam(name, type_=ARRAY(column.type)))
        return column.in_(select(func.json_each(bindparam(name)).table_valued("value").c.value))

    return condition


def as_list(connection: Connection, values: Iterable[Any]) -> Any:
    """Convert the values to the driver's form of the parameter of `listed`."""
    return list(values) if connection.dialect.name == "postgresql" else json.dumps(list(values))
