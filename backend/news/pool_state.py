"""The state of the whole pool: its version, which serialises all changes, and its counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from backend.db.tables import DuplicateRow, NewsRow, PoolVersionRow, VectorRow


class PoolState(NamedTuple):
    """The version, and the number that the next new article gets."""

    version: int
    next_number: int


def lock_version(connection: Connection) -> PoolState:
    """Wait until no other transaction writes the pool. (SQLite has waited at BEGIN IMMEDIATE already.)"""
    query = select(PoolVersionRow.version, PoolVersionRow.next_number).with_for_update()
    return PoolState(*connection.execute(query).one())


def read_version(connection: Connection) -> int:
    """The pool's version, which differs after every change."""
    return connection.execute(select(PoolVersionRow.version)).scalar_one()


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """The pool's counts; `vectors` counts by encoder digest."""

    version: int
    news: int
    duplicates: int
    taken_down: int
    sources: dict[str, int]
    sections: dict[str, int]
    vectors: dict[str, int]


def pool_counts(connection: Connection) -> PoolCounts:
    """The counts as one transaction sees them.

    Articles past their lifetime count until they are expired.
    """
    up = NewsRow.taken_down_at.is_(None)
    by_source = select(NewsRow.source, func.count()).where(up).group_by(NewsRow.source).order_by(NewsRow.source)
    by_section = select(NewsRow.section, func.count()).where(up).group_by(NewsRow.section).order_by(NewsRow.section)
    by_encoder = select(VectorRow.encoder, func.count()).group_by(VectorRow.encoder).order_by(VectorRow.encoder)
    sources = dict(connection.execute(by_source).all())
    return PoolCounts(
        version=read_version(connection),
        news=sum(sources.values()),
        duplicates=connection.execute(select(func.count()).select_from(DuplicateRow)).scalar_one(),
        taken_down=connection.execute(select(func.count()).select_from(NewsRow).where(~up)).scalar_one(),
        sources=sources,
        sections=dict(connection.execute(by_section).all()),
        vectors=dict(connection.execute(by_encoder).all()),
    )
