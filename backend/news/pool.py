"""The news pool: what the server has to offer, and a version that tells when it has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain, starmap

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, delete, func, null, select, update

from backend.db.chunks import among, chunks
from backend.db.engine import reading, writing
from backend.db.tables import BodyRow, NewsRow, VectorRow
from backend.news.batch import DeliveryBatch
from backend.news.duplicates import Text, link, unlink
from backend.news.errors import UnknownNews
from backend.news.ingest_runs import IngestSummary, last_runs, note_run
from backend.news.item import NewsItem
from backend.news.pool_changes import changed_since, raise_version
from backend.news.pool_reading import ROWS_PER_FETCH, PoolReading, PoolRow, read_pool
from backend.news.pool_state import PoolCounts, lock_version, pool_counts, read_version
from backend.news.report import IngestReport
from backend.news.vectors import read_vectors, write_vectors
from backend.plain_text import cut_text, longest_whole

NEWS_LIFETIME = timedelta(days=30)
EXPIRED_PER_TRANSACTION = 1_000
BODIES_LIMIT_CHARS = 8_000_000
"""Of the texts of one list: 1,000 of 8,000 characters, at most 48 MB as JSON. Devices take no more than 64."""


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
        is no change. A changed title drops its vectors. What was taken down stays down and counts as withheld, as does
        what another feed has brought (`DeliveryBatch`).
        """
        started = time.perf_counter()
        delivered = list(items)
        with writing(self._engine) as connection:
            turn = lock_version(connection)
            batch = DeliveryBatch(connection, source=source, now=self._clock(), next_number=turn.next_number)
            batch.store(delivered)
            if batch.added or batch.updated:
                raise_version(connection, batch.changed, next_number=batch.next_number)
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
        with self.reading("", now) as reading:
            return [row for block in reading.blocks for row in block.rows]

    @contextmanager
    def reading(self, encoder: str, now: datetime, since: int | None = None) -> Iterator[PoolReading]:
        """The live news of one moment with their vectors by this encoder, or what changed of them after version
        `since`, while the block runs."""
        with reading(self._engine) as connection:
            yield read_pool(connection, encoder, self.horizon(now), since)

    def bodies(self, ids: Iterable[str], limit_chars: int = BODIES_LIMIT_CHARS) -> dict[str, str]:
        """The bodies of those ids that the pool still has, '' where its source gave none.

        Together at most `limit_chars` characters: beyond that the longest are cut, all at one length (`cut_text`).
        """
        with reading(self._engine) as connection:
            sizes = select(func.length(BodyRow.body)).join(NewsRow, BodyRow.news == NewsRow.number)
            parts = [among(connection, NewsRow.id, wanted) for wanted in chunks(ids)]
            level = longest_whole([n for part in parts for n in connection.scalars(sizes.where(part))], limit_chars)
            # No more of a text is read than is needed to see that it is longer.
            begun = func.coalesce(func.substr(BodyRow.body, 1, level + 1), "")
            query = select(NewsRow.id, begun).outerjoin(BodyRow).where(NewsRow.taken_down_at.is_(None))
            rows = [row for part in parts for row in connection.execute(query.where(part))]
        return {news_id: cut_text(body, level) for news_id, body in rows}

    def missing_vectors(self, encoder: str, since: int | None = None) -> list[PoolRow]:
        """All news without a vector of this encoder, in the order of arrival; that one repeats another isn't told.

        since: a version at which none were without, so that only what has changed is looked at.
        """
        query = (
            select(*(getattr(NewsRow, name) for name in PoolRow.__slots__[:-1]), null())
            .outerjoin(VectorRow, (VectorRow.news == NewsRow.number) & (VectorRow.encoder == encoder))
            .where(VectorRow.news.is_(None), NewsRow.taken_down_at.is_(None))
            .order_by(NewsRow.number)
        )
        with reading(self._engine) as connection:
            changed = None if since is None else changed_since(connection, since)
            queries = [query]
            if changed is not None:
                parts = chunks(changed.tolist(), ROWS_PER_FETCH)
                queries = [query.where(among(connection, NewsRow.number, some)) for some in parts]
            rows = chain.from_iterable(map(connection.execute, queries))
            return list(starmap(PoolRow, rows))

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
        with reading(self._engine) as connection:
            return read_vectors(connection, encoder)

    def version(self) -> int:
        """Another, and a larger one, after every change; equal versions mean an equal pool."""
        with reading(self._engine) as connection:
            return read_version(connection)

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
                raise_version(connection, {*gone, *link(connection, {}, orphans)})
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
            cleared = {"title": "", "abstract": "", "url": "", "picture": "", "taken_down_at": self._clock()}
            connection.execute(update(NewsRow).where(NewsRow.number == found.number).values(cleared))
            raise_version(connection, {found.number, *link(connection, {}, orphans)})

    def counts(self) -> PoolCounts:
        """The pool in figures, read in one moment; news past their lifetime count until `expire`."""
        with reading(self._engine) as connection:
            return pool_counts(connection)

    def log(self, source: str, report: IngestReport, failure: str | None = None) -> None:
        """Notes a finished run for the console; the pool itself, and so its version, does not change."""
        with writing(self._engine) as connection:
            note_run(connection, source, report, failure, finished_at=self._clock())

    def ingests(self, limit: int = 20) -> list[IngestSummary]:
        """The last runs, newest first."""
        with reading(self._engine) as connection:
            return last_runs(connection, limit)
