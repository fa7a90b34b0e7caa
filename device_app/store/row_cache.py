"""Rows kept in memory as well, so that a feed need not read and parse again what hasn't changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from device_app.store.database import Database

T = TypeVar("T")


class RowCache(Generic[T]):
    """A value made of rows that only its owner writes: read once, then from memory until the owner forgets it.

    Forgotten by itself when a transaction is rolled back and when the device is erased.
    """

    def __init__(self, database: Database, read: Callable[[], T]) -> None:
        self._database = database
        self._read = read
        self._known: tuple[T] | None = None
        database.when_undone(self.forget)

    def get(self) -> T:
        """The value; no other thread writes while it is read."""
        with self._database.alone():
            if self._known is None:
                self._known = (self._read(),)
            return self._known[0]

    def forget(self) -> None:
        """Read again next time; call it inside the transaction that writes."""
        self._known = None
