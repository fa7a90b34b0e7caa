"""Reads a consistent state of the pool in blocks of articles with vectors: everything, or changes since a version.

Vectors are kept by encoder, written with the pool's version, and read as one matrix.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select
from sqlalchemy.orm import aliased

from backend.db.statements import among, chunks
from backend.db.tables import DuplicateRow, NewsRow, VectorRow
from backend.news.newest import is_live
from backend.news.pool_version import changed_since, lock_version, raise_version, read_version
from protocol.news import ALSO_LIMIT, UNDATED_AGE, AlsoIn

VECTORS_PER_FETCH = 1_000
"""Vectors fetched at a time: about a megabyte, which stays in the processor's cache."""


def read_vectors(connection: Connection, encoder: str) -> tuple[list[str], NDArray[np.float32]]:
    """Ids and vectors, float32 [n, D], of one encoder in order of arrival; [0, 0] if there are none."""
    of_encoder = VectorRow.encoder == encoder
    query = select(NewsRow.id, VectorRow.vector).join(NewsRow, NewsRow.number == VectorRow.news).where(of_encoder)
    query = query.order_by(VectorRow.news).execution_options(yield_per=VECTORS_PER_FETCH)
    size = select(func.count(), func.max(func.length(VectorRow.vector))).where(of_encoder)
    count, width_bytes = connection.execute(size).one()
    if not count:
        return [], np.empty((0, 0), np.float32)
    ids: list[str] = []
    vectors = np.empty((count, width_bytes // 4), "<f4")
    for rows in connection.execute(query).partitions():
        block = np.frombuffer(b"".join([vector for _, vector in rows]), "<f4")
        vectors[len(ids) : len(ids) + len(rows)] = block.reshape(len(rows), -1)
        ids += [news_id for news_id, _ in rows]
    return ids, vectors


def write_vectors(
    connection: Connection,
    encoder: str,
    ids: Sequence[str],
    vectors: NDArray[np.float32],
    titles: Sequence[str] | None = None,
) -> int:
    """Store vectors as `NewsPool.store_vectors` describes, within the caller's transaction."""
    _check_vectors(ids, vectors)
    if titles is not None and len(titles) != len(ids):
        raise ValueError(f"titles has {len(titles)} entries for {len(ids)} ids")
    encoded = dict(zip(ids, titles, strict=True)) if titles is not None else {}
    row_of = {news_id: row for row, news_id in enumerate(ids)}
    little_endian = np.ascontiguousarray(vectors, dtype="<f4")
    stored: list[int] = []
    lock_version(connection)
    for wanted in chunks(row_of):
        query = select(NewsRow.number, NewsRow.id, NewsRow.title).where(
            among(connection, NewsRow.id, wanted), NewsRow.taken_down_at.is_(None)
        )
        rows = [
            {"encoder": encoder, "news": number, "vector": little_endian[row_of[news_id]].tobytes()}
            for number, news_id, title in connection.execute(query)
            if encoded.get(news_id, title) == title
        ]
        numbers = [row["news"] for row in rows]
        connection.execute(
            delete(VectorRow).where(VectorRow.encoder == encoder, among(connection, VectorRow.news, numbers))
        )
        if rows:
            connection.execute(insert(VectorRow), rows)
        stored += numbers
    if stored:
        raise_version(connection, stored)
    return len(stored)


def _check_vectors(ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
    if vectors.ndim != 2 or len(vectors) != len(ids):
        raise ValueError(f"vectors must have shape [{len(ids)}, D], got {list(vectors.shape)}")
    if vectors.dtype != np.float32:
        raise ValueError(f"vectors must be float32, got {vectors.dtype}")
    if not np.isfinite(vectors).all():
        raise ValueError("vectors must be finite")


ROWS_PER_FETCH = 2_000
"""Rows fetched at a time: two megabytes of vectors and one of texts."""


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
    differ from the requested version; None if everything is read. blocks: the live articles among those, or all; can be
    iterated once. vectors: upper bound of how many of them have a vector. older: numbers, ascending, of all live
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
    all_blocks = _blocks(connection, encoder, horizon)
    return PoolReading(read_version(connection), horizon, None, all_blocks, vectors, _older(connection, horizon))


def read_newest(connection: Connection, horizon: datetime, limit: int) -> list[PoolRow]:
    """The last published live articles, newest first."""
    newest = select(NewsRow.number).where(is_live(horizon))
    newest = newest.order_by(NewsRow.published_at.desc(), NewsRow.number.desc()).limit(limit)
    wanted = among(connection, NewsRow.number, connection.scalars(newest).all())
    rows = [row for block in _blocks(connection, "", horizon, wanted) for row in block.rows]
    return sorted(rows, key=lambda row: (row.published_at, row.number), reverse=True)


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
