"""Long lists in statements, cut to what both engines take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from sqlalchemy import BigInteger, ColumnElement, Connection, any_, func, literal, select
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


def among(connection: Connection, column: InstrumentedAttribute[int], numbers: Iterable[int]) -> ColumnElement[bool]:
    """`column IN (numbers)` with the list as one parameter: an array in PostgreSQL, a JSON text in SQLite.

    For lists of thousands, where SQLAlchemy takes longer to write the statement than the engine to run it.
    """
    if connection.dialect.name == "postgresql":
        return column == any_(literal(list(numbers), ARRAY(BigInteger)))
    listed = func.json_each(json.dumps(list(numbers))).table_valued("value")
    return column.in_(select(listed.c.value))
