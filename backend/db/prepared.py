"""Statements compiled once, for what is asked many times a second."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Dialect, Executable, any_, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from backend.db.driver import StatementAnswer, ask_sqlite

Make = Callable[[Dialect], Executable]


class Prepared:
    """A statement that is compiled at its first use and then given to the driver as text.

    To build a statement and to pass it through the ORM takes SQLAlchemy some 0.6 ms, to pass on a text .05, and SQLite
    itself .01, so its driver is asked directly.
    Its parameters are those of `bindparam`, and of an INSERT all columns of the table. Values go to the driver and come
    from it as they are: it is for texts, numbers and bytes, and not for times. What a session has yet to flush it
    doesn't see.

    Args:
        statement: or what makes it for a dialect, where the two engines' differ.
    """

    def __init__(self, statement: Executable | Make) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, list[str], dict[str, Any]]] = {}

    def run(self, connection: Connection, **values: Any) -> StatementAnswer:
        """Execute it in the connection's transaction. Raises KeyError for a value that is missing."""
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
    """`column IN (...)` with the list as the one parameter `name`, which `as_list` makes (`chunks.among`)."""

    def condition(dialect: Dialect) -> ColumnElement[bool]:
        if dialect.name == "postgresql":
            return column == any_(bindparam(name, type_=ARRAY(column.type)))
        return column.in_(select(func.json_each(bindparam(name)).table_valued("value").c.value))

    return condition


def as_list(connection: Connection, values: Iterable[Any]) -> Any:
    """The values as the driver takes the parameter of `listed`."""
    return list(values) if connection.dialect.name == "postgresql" else json.dumps(list(values))
