"""Long lists in statements, cut to what both engines take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

PARAMETERS_PER_STATEMENT = 5_000
"""SQLite takes 32,766 parameters, PostgreSQL 65,535; longer lists gain nothing."""

T = TypeVar("T")


def chunks(values: Iterable[T], size: int = PARAMETERS_PER_STATEMENT) -> Iterator[list[T]]:
    """`values` in lists of at most `size`."""
    source = iter(values)
    while chunk := list(islice(source, size)):
        yield chunk
