"""Long lists in statements, cut to what both engines take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, any_, func, literal, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import InstrumentedAttribute

PARAMETERS_PER_STATEMENT = 5_000
"""SQLite takes 32,766 parameters, PostgreSQL 65,535; longer lists gain nothing."""

T = TypeVar("T")


def chunks(values: Iterable[T], size: int = PARAMETERS_PER_STATEMENT) -> Iterator[list[T]]:
    """`values` in lists of at most `size`."""
    source = iter(values)
    while chunk := list(islice(source, size)):
        yield chunk


def among(connection: Connection, column: InstrumentedAttribute[T], values: Iterable[T]) -> ColumnElement[bool]:
    """`column IN (values)` with the list as one parameter: an array in PostgreSQL, a JSON text in SQLite.

    For lists of thousands: SQLAlchemy would take longer to write them out than SQLite to look them up, and
    PostgreSQL compares a list of single parameters one by one with every row.
    """
    if connection.dialect.name == "postgresql":
        return column == any_(literal(list(values), ARRAY(column.type)))
    listed = func.json_each(json.dumps(list(values))).table_valued("value")
    return column.in_(select(listed.c.value))
