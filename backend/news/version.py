"""The pool's version and the turn to write: one row, locked first and raised last."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, select, update

from backend.db.tables import PoolVersionRow


class PoolState(NamedTuple):
    """The version, and the number that the next new piece of news gets."""

    version: int
    next_number: int


def lock_version(connection: Connection) -> PoolState:
    """Waits until no other transaction writes the pool. (SQLite has waited at BEGIN IMMEDIATE already.)"""
    query = select(PoolVersionRow.version, PoolVersionRow.next_number).with_for_update()
    return PoolState(*connection.execute(query).one())


def raise_version(connection: Connection, *, next_number: int | None = None) -> None:
    """Tells every reader of the version that this transaction changed the pool."""
    values: dict[str, object] = {"version": PoolVersionRow.version + 1}
    if next_number is not None:
        values["next_number"] = next_number
    connection.execute(update(PoolVersionRow).values(values))
