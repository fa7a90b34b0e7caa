"""Helpers for repositories: times as numbers, pages of long lists, and cached rows.

SQLite keeps no checksums of its pages: a bit that flips on the disk shows only when a row is read. Unreadable rows that
the backend can provide again count as missing (`if_readable`); unreadable rows that only the device has mean that the
file is damaged (`database_copy`).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from device_app.process import kind_of
from device_app.store.database import Database

T = TypeVar("T")
PAGE_SIZE = 50
_log = logging.getLogger(__name__)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(at: datetime) -> int:
    """Microseconds since 1970 of an aware time; raises ValueError for a naive one."""
    if at.tzinfo is None:
        raise ValueError(f"a time in the store needs a time zone; got {at.isoformat()}")
    return (at - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """Return the UTC time of this many microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=us)


def if_readable(what: str, read: Callable[[], T]) -> T | None:
    """Read a row that the backend can provide again; None if it can't be read.

    what: the name of the row in the log.
    """
    try:
        return read()
    except ValueError as broken:
        _log.warning("%s in the store can't be read (%s) and counts as not kept", what, kind_of(broken))
        return None


@dataclass(frozen=True)
class Page(Generic[T]):
    """Rows of page `number` (the first is 1), and the number of rows on all pages."""

    rows: tuple[T, ...]
    number: int
    total: int
    size: int = PAGE_SIZE

    @property
    def pages(self) -> int:
        """How many pages there are; an empty list has one."""
        return max(1, -(-self.total // self.size))


def offset(number: int, size: int = PAGE_SIZE) -> int:
    """Return the number of rows before page `number`; raises ValueError below page 1."""
    if number < 1:
        raise ValueError(f"page {number}: pages count from 1")
    return (number - 1) * size


class RowCache(Generic[T]):
    """A cached value computed from rows that only its owner writes.

    It is read once and cached until the owner forgets it. It is also forgotten when a transaction is rolled back and
    when the device is erased.
    """

    def __init__(self, database: Database, read: Callable[[], T]) -> None:
        self._database = database
        self._read = read
        self._known: tuple[T] | None = None
        database.when_undone(self.forget)

    def get(self) -> T:
        """Return the value; no other thread writes while it is read."""
        with self._database.alone():
            if self._known is None:
                self._known = (self._read(),)
            return self._known[0]

    def forget(self) -> None:
        """Read the rows again next time; call it inside the transaction that writes."""
        self._known = None
