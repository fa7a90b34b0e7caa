"""Reads a consistent state of the pool in blocks of articles with vectors: everything, or changes since a version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, func, select
from sqlalchemy.orm import aliased

from backend.db.statements import among, chunks
from backend.db.tables import DuplicateRow, NewsRow, VectorRow
from backend.news.newest import is_live
from backend.news.pool_version import changed_since, read_version
from protocol.news import ALSO_LIMIT, UNDATED_AGE, AlsoIn

ROWS_PER_FETCH = 2_000
"""Two megabytes of vectors and one of texts at a time."""


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A live article without its body.

    duplicate_of: the id of the live original that it repeats. dated: as in `NewsRow`. also: the newest of its own
    near-duplicates.
    """

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
    dated: bool = True
    also: tuple[AlsoIn, ...] = ()

    @property
    def counted_at(self) -> datetime:
        """The time by which articles are ordered; as `NewsCard.counted_at`."""
        return self.published_at if self.dated else self.published_at - UNDATED_AGE


COLUMNS = tuple(getattr(NewsRow, name) for name in PoolRow.__slots__[: PoolRow.__slots__.index("duplicate_of")])


class NewsBlock(NamedTuple):
    """Live articles, ascending by number, each with its vector's bytes (float32), None if it has none yet."""

    rows: list[PoolRow]
    vectors: list[bytes | None]


@dataclass(frozen=True)
class PoolReading:
    """A consistent reading of the pool.

    horizon: articles published at or before it have expired. changed: numbers [m], ascending, of all articles that may
    differ from the version asked about; None if everything is read. blocks: the live articles among those, or all; can
    be iterated once. vectors: upper bound of how many of them have a vector. older: numbers, ascending, of all live
    articles whose `counted_at` is at or before the horizon: a feed's newest, and undated ones.
    """

    version: int
    horizon: datetime
    changed: NDArray[np.int64] | None
    blocks: Iterator[NewsBlock]
    vectors: int
    older: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


def read_pool(connection: Connection, encoder: str, horizon: datetime, since: int | None) -> PoolReading:
    """Read the pool within the caller's transaction, which must stay open until the blocks are read.

    since: a version whose live articles the caller knows. Articles that have expired since by their date alone are not
    in `changed`. The duplicates of expired originals are, and so are those of any changed article, which may be live
    again.
    """
    changed = None if since is None else changed_since(connection, since)
    if changed is not None:
        original = aliased(NewsRow)
        copies = select(DuplicateRow.news)
        freed = copies.join(original, original.number == DuplicateRow.original)
        freed = freed.where(original.published_at <= horizon, ~original.kept)
        some_of = chunks(changed.tolist(), ROWS_PER_FETCH)
        repeating = [copies.where(among(connection, DuplicateRow.original, some)) for some in some_of]
        found = chain.from_iterable(connection.scalars(query) for query in (freed, *repeating))
        changed = np.union1d(changed, np.fromiter(found, dtype=np.int64))
        conditions = (among(connection, NewsRow.number, some) for some in chunks(changed.tolist(), ROWS_PER_FETCH))
        blocks = chain.from_iterable(_blocks(connection, encoder, horizon, each) for each in conditions)
        older = _older(connection, horizon)
        return PoolReading(read_version(connection), horizon, changed, blocks, len(changed), older)
    vectors = connection.execute(select(func.count()).where(VectorRow.encoder == encoder)).scalar_one()
    whole = _blocks(connection, encoder, horizon)
    return PoolReading(read_version(connection), horizon, None, whole, vectors, _older(connection, horizon))


def _older(connection: Connection, horizon: datetime) -> NDArray[np.int64]:
    undated = (~NewsRow.dated) & (NewsRow.published_at <= horizon + UNDATED_AGE)
    query = select(NewsRow.number).where(is_live(horizon), (NewsRow.published_at <= horizon) | undated)
    return np.fromiter(connection.scalars(query.order_by(NewsRow.number)), dtype=np.int64)


def _blocks(
    connection: Connection, encoder: str, horizon: datetime, condition: ColumnElement[bool] | None = None
) -> Iterator[NewsBlock]:
    original = aliased(NewsRow)
    live = (original.published_at > horizon) | original.kept
    query = (
        select(*COLUMNS, original.id, NewsRow.dated, VectorRow.vector)
        .outerjoin(DuplicateRow, DuplicateRow.news == NewsRow.number)
        .outerjoin(original, (original.number == DuplicateRow.original) & live)
        .outerjoin(VectorRow, (VectorRow.news == NewsRow.number) & (VectorRow.encoder == encoder))
        .where(is_live(horizon))
        .order_by(NewsRow.number)
        .execution_options(yield_per=ROWS_PER_FETCH)
    )
    if condition is not None:
        query = query.where(condition)
    for rows in connection.execute(query).partitions():
        also = _also_in(connection, horizon, [row.number for row in rows])
        found = [PoolRow(*row[:-1]) for row in rows]
        found = [replace(row, also=also[row.number]) if row.number in also else row for row in found]
        yield NewsBlock(found, [row[-1] for row in rows])


def _also_in(connection: Connection, horizon: datetime, numbers: Sequence[int]) -> dict[int, tuple[AlsoIn, ...]]:
    """The live near-duplicates of each of these articles that has any, newest first."""
    query = (
        select(DuplicateRow.original, *(getattr(NewsRow, name) for name in AlsoIn.model_fields))
        .join(NewsRow, NewsRow.number == DuplicateRow.news)
        .where(among(connection, DuplicateRow.original, numbers), is_live(horizon))
        .order_by(NewsRow.published_at.desc(), NewsRow.number.desc())
    )
    found: dict[int, tuple[AlsoIn, ...]] = {}
    for original, *values in connection.execute(query):
        if len(found.get(original, ())) < ALSO_LIMIT:
            also = AlsoIn(**dict(zip(AlsoIn.model_fields, values, strict=True)))
            found[original] = (*found.get(original, ()), also)
    return found
