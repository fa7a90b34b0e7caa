"""The news pool: what the server has to offer, and a version that tells when it has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.orm import aliased

from backend.db.chunks import among, chunks
from backend.db.engine import reading, writing
from backend.db.tables import BodyRow, DuplicateRow, IngestRow, NewsRow, PoolVersionRow, VectorRow
from backend.news.batch import DeliveryBatch
from backend.news.duplicates import Text, link, unlink
from backend.news.errors import UnknownNews
from backend.news.item import NewsItem
from backend.news.report import KEPT_REJECTIONS, IngestReport, Rejection

NEWS_LIFETIME = timedelta(days=30)
EXPIRED_PER_TRANSACTION = 1_000
VECTORS_PER_FETCH = 1_000
"""A megabyte at a time stays in the processor's cache on its way into the matrix."""


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


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A live piece of news without its body; `duplicate_of` names the older live news that says the same."""

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


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """The pool in figures; `vectors` counts by encoder digest."""

    version: int
    news: int
    duplicates: int
    taken_down: int
    sources: dict[str, int]
    sections: dict[str, int]
    vectors: dict[str, int]


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """One run of a source, as the console lists it; rejections are the first of `rejected` malformed rows, by line."""

    source: str
    finished_at: datetime
    seconds: float
    added: int
    updated: int
    unchanged: int
    duplicates: int
    withheld: int
    rejected: int
    failure: str | None
    rejections: tuple[Rejection, ...] = ()


def _utc_now() -> datetime:
    return datetime.now(UTC)


class NewsPool:
    """The pool in one database. Every change is one transaction that also raises the version.

    lifetime: how long after its publication a piece of news is live.
    """

    def __init__(
        self, engine: Engine, *, lifetime: timedelta = NEWS_LIFETIME, clock: Callable[[], datetime] = _utc_now
    ) -> None:
        if lifetime <= timedelta(0):
            raise ValueError(f"lifetime must be positive, got {lifetime}")
        self._engine = engine
        self._clock = clock
        self.lifetime = lifetime

    def horizon(self, now: datetime) -> datetime:
        """News published at or before this moment have expired at `now`."""
        return now - self.lifetime

    def add(self, items: Iterable[NewsItem], *, source: str) -> IngestReport:
        """Adds or updates news in one transaction and links near-duplicates; the later of two equal ids wins.

        Re-adding the same content changes nothing, not even the version; a time of publication that alone differs
        is no change. A changed title drops its vectors. What was taken down stays down and counts as withheld.
        """
        started = time.perf_counter()
        delivered = list(items)
        with writing(self._engine) as connection:
            turn = lock_version(connection)
            batch = DeliveryBatch(connection, source=source, now=self._clock(), next_number=turn.next_number)
            batch.store(delivered)
            if batch.added or batch.updated:
                raise_version(connection, next_number=batch.next_number)
        return IngestReport(
            added=batch.added,
            updated=batch.updated,
            unchanged=batch.unchanged,
            duplicates=batch.duplicates,
            withheld=batch.withheld,
            seconds=time.perf_counter() - started,
        )

    def live(self, now: datetime) -> list[PoolRow]:
        """All news neither expired at `now` nor taken down, in the order of arrival."""
        original = aliased(NewsRow)
        alive = NewsRow.taken_down_at.is_(None) & (NewsRow.published_at > self.horizon(now))
        columns = [*(getattr(NewsRow, name) for name in PoolRow.__slots__[:-1]), original.id]
        query = (
            select(*columns)
            .outerjoin(DuplicateRow, DuplicateRow.news == NewsRow.number)
            .outerjoin(
                original, (original.number == DuplicateRow.original) & (original.published_at > self.horizon(now))
            )
            .where(alive)
            .order_by(NewsRow.number)
        )
        with reading(self._engine) as connection:
            return list(starmap(PoolRow, connection.execute(query)))

    def bodies(self, ids: Iterable[str]) -> dict[str, str]:
        """The bodies of those ids that the pool still has and that have one."""
        found: dict[str, str] = {}
        with reading(self._engine) as connection:
            for wanted in chunks(ids):
                query = (
                    select(NewsRow.id, BodyRow.body)
                    .join(BodyRow, BodyRow.news == NewsRow.number)
                    .where(among(connection, NewsRow.id, wanted))
                )
                found.update((news_id, body) for news_id, body in connection.execute(query))
        return found

    def missing_vectors(self, encoder: str) -> list[tuple[int, str, str, str]]:
        """(number, id, title, abstract) of all news without a vector of this encoder, in the order of arrival."""
        query = (
            select(NewsRow.number, NewsRow.id, NewsRow.title, NewsRow.abstract)
            .outerjoin(VectorRow, (VectorRow.news == NewsRow.number) & (VectorRow.encoder == encoder))
            .where(VectorRow.news.is_(None), NewsRow.taken_down_at.is_(None))
            .order_by(NewsRow.number)
        )
        with reading(self._engine) as connection:
            return [
                (number, news_id, title, abstract) for number, news_id, title, abstract in connection.execute(query)
            ]

    def store_vectors(
        self,
        encoder: str,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        *,
        titles: Sequence[str] | None = None,
    ) -> int:
        """Stores float32 [n, D] vectors of n ids, and returns how many; ids gone in the meantime are left out.

        titles: what was encoded; a piece of news whose title has changed since is left out too.
        Raises ValueError on another shape or type, on values that are not finite, or on another length of titles.
        """
        with writing(self._engine) as connection:
            return write_vectors(connection, encoder, ids, vectors, titles)

    def vectors(self, encoder: str) -> tuple[list[str], NDArray[np.float32]]:
        """Ids and vectors, float32 [n, D], of one encoder in the order of arrival; [0, 0] where there are none."""
        of_encoder = VectorRow.encoder == encoder
        query = select(NewsRow.id, VectorRow.vector).join(NewsRow, NewsRow.number == VectorRow.news).where(of_encoder)
        query = query.order_by(VectorRow.news).execution_options(yield_per=VECTORS_PER_FETCH)
        ids: list[str] = []
        with reading(self._engine) as connection:
            size = select(func.count(), func.max(func.length(VectorRow.vector))).where(of_encoder)
            count, width_bytes = connection.execute(size).one()
            if not count:
                return [], np.empty((0, 0), np.float32)
            vectors = np.empty((count, width_bytes // 4), "<f4")
            for rows in connection.execute(query).partitions():
                block = np.frombuffer(b"".join([vector for _, vector in rows]), "<f4")
                vectors[len(ids) : len(ids) + len(rows)] = block.reshape(len(rows), -1)
                ids += [news_id for news_id, _ in rows]
        return ids, vectors

    def version(self) -> int:
        """The number of changes so far; equal versions mean an equal pool."""
        with reading(self._engine) as connection:
            return connection.execute(select(PoolVersionRow.version)).scalar_one()

    def expire(self, now: datetime) -> int:
        """Removes all that has outlived its lifetime at `now`, with bodies and vectors; returns how many.

        Works in transactions of 1,000, so that other writers never wait long.
        """
        expired = 0
        while removed := self._expire_some(now):
            expired += removed
        return expired

    def _expire_some(self, now: datetime) -> int:
        old = (
            select(NewsRow.number, NewsRow.title, NewsRow.abstract)
            .where(NewsRow.published_at <= self.horizon(now), NewsRow.taken_down_at.is_(None))
            .limit(EXPIRED_PER_TRANSACTION)
        )
        with writing(self._engine) as connection:
            lock_version(connection)
            gone = {number: Text(title, abstract) for number, title, abstract in connection.execute(old)}
            if gone:
                orphans = unlink(connection, gone)
                connection.execute(delete(NewsRow).where(among(connection, NewsRow.number, gone)))
                link(connection, {}, orphans)
                raise_version(connection)
        return len(gone)

    def take_down(self, news_id: str) -> None:
        """Withdraws a piece of news for good: its text, body and vectors go, its id stays barred.

        Raises UnknownNews. Taking down twice changes nothing.
        """
        with writing(self._engine) as connection:
            lock_version(connection)
            query = select(NewsRow.number, NewsRow.title, NewsRow.abstract, NewsRow.taken_down_at).where(
                NewsRow.id == news_id
            )
            found = connection.execute(query).one_or_none()
            if found is None:
                raise UnknownNews(news_id)
            if found.taken_down_at is not None:
                return
            orphans = unlink(connection, {found.number: Text(found.title, found.abstract)})
            connection.execute(delete(BodyRow).where(BodyRow.news == found.number))
            connection.execute(delete(VectorRow).where(VectorRow.news == found.number))
            cleared = {"title": "", "abstract": "", "url": "", "taken_down_at": self._clock()}
            connection.execute(update(NewsRow).where(NewsRow.number == found.number).values(cleared))
            link(connection, {}, orphans)
            raise_version(connection)

    def counts(self) -> PoolCounts:
        """The pool in figures, read in one moment; news past their lifetime count until `expire`."""
        up = NewsRow.taken_down_at.is_(None)
        with reading(self._engine) as connection:
            by_source = select(NewsRow.source, func.count()).where(up).group_by(NewsRow.source).order_by(NewsRow.source)
            by_section = (
                select(NewsRow.section, func.count()).where(up).group_by(NewsRow.section).order_by(NewsRow.section)
            )
            by_encoder = select(VectorRow.encoder, func.count()).group_by(VectorRow.encoder).order_by(VectorRow.encoder)
            sources = dict(connection.execute(by_source).all())
            return PoolCounts(
                version=connection.execute(select(PoolVersionRow.version)).scalar_one(),
                news=sum(sources.values()),
                duplicates=connection.execute(select(func.count()).select_from(DuplicateRow)).scalar_one(),
                taken_down=connection.execute(select(func.count()).select_from(NewsRow).where(~up)).scalar_one(),
                sources=sources,
                sections=dict(connection.execute(by_section).all()),
                vectors=dict(connection.execute(by_encoder).all()),
            )

    def log(self, source: str, report: IngestReport, failure: str | None = None) -> None:
        """Notes a finished run for the console; the pool itself, and so its version, does not change."""
        row = {
            "source": source,
            "finished_at": self._clock(),
            "seconds": report.seconds,
            "added": report.added,
            "updated": report.updated,
            "unchanged": report.unchanged,
            "duplicates": report.duplicates,
            "withheld": report.withheld,
            "rejected": report.rejected_count,
            "failure": failure,
            "rejections": [one.to_json() for one in report.rejected[:KEPT_REJECTIONS]],
        }
        with writing(self._engine) as connection:
            connection.execute(insert(IngestRow), row)

    def ingests(self, limit: int = 20) -> list[IngestSummary]:
        """The last runs, newest first."""
        columns = [getattr(IngestRow, name) for name in IngestSummary.__slots__]
        with reading(self._engine) as connection:
            rows = connection.execute(select(*columns).order_by(IngestRow.number.desc()).limit(limit))
            return [IngestSummary(**{**row._mapping, "rejections": _rejections(row.rejections)}) for row in rows]


def _rejections(kept: list[dict[str, Any]]) -> tuple[Rejection, ...]:
    return tuple(Rejection(**one) for one in kept)


def _check_vectors(ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
    if vectors.ndim != 2 or len(vectors) != len(ids):
        raise ValueError(f"vectors must have shape [{len(ids)}, D], got {list(vectors.shape)}")
    if vectors.dtype != np.float32:
        raise ValueError(f"vectors must be float32, got {vectors.dtype}")
    if not np.isfinite(vectors).all():
        raise ValueError("vectors must be finite")


def write_vectors(
    connection: Connection,
    encoder: str,
    ids: Sequence[str],
    vectors: NDArray[np.float32],
    titles: Sequence[str] | None = None,
) -> int:
    """`NewsPool.store_vectors` within a transaction of the caller's, who commits it."""
    _check_vectors(ids, vectors)
    if titles is not None and len(titles) != len(ids):
        raise ValueError(f"titles has {len(titles)} entries for {len(ids)} ids")
    encoded = dict(zip(ids, titles, strict=True)) if titles is not None else {}
    row_of = {news_id: row for row, news_id in enumerate(ids)}
    little_endian = np.ascontiguousarray(vectors, dtype="<f4")
    stored = 0
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
        stored += len(rows)
    if stored:
        raise_version(connection)
    return stored
