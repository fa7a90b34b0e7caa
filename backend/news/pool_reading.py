"""One moment of the pool, read whole or as far as it has changed since a version, in blocks of news with vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, func, select
from sqlalchemy.orm import aliased

from backend.db.chunks import among, chunks
from backend.db.tables import DuplicateRow, NewsRow, VectorRow
from backend.news.pool_changes import changed_since
from backend.news.pool_state import read_version

ROWS_PER_FETCH = 2_000
"""Two megabytes of vectors and one of texts at a time."""


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A live piece of news without its body; `duplicate_of` names the live news that said the same before."""

    number: int
    id: str
    title: str
    abstract: str
    url: str
    publisher: str
    section: str
    topic: str
    story: str | None
    published_at: datetime
    weight: float
    duplicate_of: str | None


class NewsBlock(NamedTuple):
    """Live news, ascending by number, and beside each its vector's bytes (float32), None where it has none yet."""

    rows: list[PoolRow]
    vectors: list[bytes | None]


@dataclass(frozen=True)
class PoolReading:
    """version: of the moment read; horizon: news published at or before it have expired. changed: numbers [m],
    ascending, of all that may be other than it was at the version asked about; None where everything is read. blocks:
    the live news among those, or all, once. vectors: at most how many of them have one."""

    version: int
    horizon: datetime
    changed: NDArray[np.int64] | None
    blocks: Iterator[NewsBlock]
    vectors: int


def read_pool(connection: Connection, encoder: str, horizon: datetime, since: int | None) -> PoolReading:
    """The pool within a transaction of the caller's, which has to stay open until the blocks are read.

    since: a version of which the caller knows the live news;
    what has expired since by its own date alone is not among `changed`, but news that repeat it are, as are those that
    repeat anything which changed: with a new date it may be live again.
    """
    changed = None if since is None else changed_since(connection, since)
    if changed is not None:
        original = aliased(NewsRow)
        copies = select(DuplicateRow.news)
        freed = copies.join(original, original.number == DuplicateRow.original).where(original.published_at <= horizon)
        some_of = chunks(changed.tolist(), ROWS_PER_FETCH)
        repeating = [copies.where(among(connection, DuplicateRow.original, some)) for some in some_of]
        found = chain.from_iterable(connection.scalars(query) for query in (freed, *repeating))
        changed = np.union1d(changed, np.fromiter(found, dtype=np.int64))
        conditions = (among(connection, NewsRow.number, some) for some in chunks(changed.tolist(), ROWS_PER_FETCH))
        blocks = chain.from_iterable(_blocks(connection, encoder, horizon, each) for each in conditions)
        return PoolReading(read_version(connection), horizon, changed, blocks, len(changed))
    vectors = connection.execute(select(func.count()).where(VectorRow.encoder == encoder)).scalar_one()
    return PoolReading(read_version(connection), horizon, None, _blocks(connection, encoder, horizon), vectors)


def _blocks(
    connection: Connection, encoder: str, horizon: datetime, condition: ColumnElement[bool] | None = None
) -> Iterator[NewsBlock]:
    original = aliased(NewsRow)
    columns = [*(getattr(NewsRow, name) for name in PoolRow.__slots__[:-1]), original.id, VectorRow.vector]
    query = (
        select(*columns)
        .outerjoin(DuplicateRow, DuplicateRow.news == NewsRow.number)
        .outerjoin(original, (original.number == DuplicateRow.original) & (original.published_at > horizon))
        .outerjoin(VectorRow, (VectorRow.news == NewsRow.number) & (VectorRow.encoder == encoder))
        .where(NewsRow.taken_down_at.is_(None) & (NewsRow.published_at > horizon))
        .order_by(NewsRow.number)
        .execution_options(yield_per=ROWS_PER_FETCH)
    )
    if condition is not None:
        query = query.where(condition)
    for rows in connection.execute(query).partitions():
        yield NewsBlock([PoolRow(*row[:-1]) for row in rows], [row[-1] for row in rows])
