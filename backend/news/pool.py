"""The pool of articles that the server offers, with a version that grows with every change."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, starmap

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, delete, func, null, select, update

from backend.db.engine import reading, writing
from backend.db.statements import among, chunks
from backend.db.tables import BodyRow, NewsRow, TextPictureRow, VectorRow
from backend.news.batch import DeliveryBatch
from backend.news.duplicates import Text, link, unlink
from backend.news.errors import UnknownNews
from backend.news.ingest_runs import IngestSummary, last_runs, note_answer, note_run
from backend.news.item import IngestReport, NewsItem
from backend.news.newest import among_newest, has_expired, is_live
from backend.news.plain_text import longest_whole
from backend.news.pool_reading import (
    COLUMNS,
    ROWS_PER_FETCH,
    PoolReading,
    PoolRow,
    read_newest,
    read_pool,
    read_vectors,
    write_vectors,
)
from backend.news.pool_version import PoolCounts, changed_since, lock_version, pool_counts, raise_version, read_version
from backend.news.sources.full_text import FullText
from protocol.bodies import BODY_CHARS, cut_body

NEWS_LIFETIME = timedelta(days=30)
KEEP_NEWEST = 20
EXPIRED_PER_TRANSACTION = 1_000
BODIES_LIMIT_CHARS = 8_000_000
"""Limit for the texts of one list: 1,000 of 8,000 characters, at most 48 MB as JSON. Devices accept no more than 64."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class NewsPool:
    """The pool in one database. Every change is one transaction that also raises the version.

    lifetime: how long after its publication an article is live. keep_newest: how many of each feed's newest articles
    are live at any age.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        lifetime: timedelta = NEWS_LIFETIME,
        keep_newest: int = KEEP_NEWEST,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        if lifetime <= timedelta(0):
            raise ValueError(f"lifetime must be positive, got {lifetime}")
        self._engine = engine
        self._clock = clock
        self.lifetime, self.keep_newest = lifetime, keep_newest

    def horizon(self, now: datetime) -> datetime:
        """Articles published at or before this moment have expired at `now`, except a feed's newest."""
        return now - self.lifetime

    def add(self, items: Iterable[NewsItem], *, source: str, read_before: bool = False) -> IngestReport:
        """Add or update articles in one transaction and link near-duplicates; of equal ids the later wins.

        Adding the same content again changes nothing, not even the version; neither does a different publication time
        alone. An article without a date keeps the time of its arrival. read_before: as in `DeliveryBatch`. A changed
        title deletes the article's vectors. Articles taken down stay down and count as withheld, as do articles that
        another feed has delivered (`DeliveryBatch`).
        """
        started = time.perf_counter()
        delivered = list(items)
        with writing(self._engine) as connection:
            state = lock_version(connection)
            batch = DeliveryBatch(
                connection,
                source=source,
                now=self._clock(),
                next_number=state.next_number,
                read_before=read_before,
                keep_newest=self.keep_newest,
            )
            batch.store(delivered)
            if batch.changed:
                raise_version(connection, batch.changed, next_number=batch.next_number)
        return IngestReport(
            added=batch.added,
            updated=batch.updated,
            unchanged=batch.unchanged,
            duplicates=batch.duplicates,
            withheld=batch.withheld,
            seconds=time.perf_counter() - started,
        )

    def has_any_of(self, source: str) -> bool:
        """Whether the pool has an article of this source."""
        with reading(self._engine) as connection:
            return connection.scalar(select(NewsRow.number).where(NewsRow.source == source).limit(1)) is not None

    def among_newest(self, source: str, items: Sequence[NewsItem]) -> set[str]:
        """The ids of a feed's newest articles, which are kept at any age, among the pool and `items`."""
        with reading(self._engine) as connection:
            return among_newest(connection, source, items, self.keep_newest)

    def titles(self, ids: Iterable[str]) -> dict[str, str]:
        """The titles of those ids that the pool has; '' for one that was taken down."""
        with reading(self._engine) as connection:
            queries = (
                select(NewsRow.id, NewsRow.title).where(among(connection, NewsRow.id, some)) for some in chunks(ids)
            )
            return {news_id: title for query in queries for news_id, title in connection.execute(query)}

    def live(self, now: datetime) -> list[PoolRow]:
        """All articles neither expired at `now` nor taken down, in the order of arrival."""
        with self.reading("", now) as reading:
            return [row for block in reading.blocks for row in block.rows]

    def live_titles(self, now: datetime) -> set[str]:
        with reading(self._engine) as connection:
            return set(connection.scalars(select(NewsRow.title).where(is_live(self.horizon(now)))))

    def newest(self, now: datetime, limit: int) -> list[PoolRow]:
        """The last published of `live`, newest first."""
        with reading(self._engine) as connection:
            return read_newest(connection, self.horizon(now), limit)

    @contextmanager
    def reading(self, encoder: str, now: datetime, since: int | None = None) -> Iterator[PoolReading]:
        """A consistent reading of the live articles with their vectors by this encoder, valid within the block.

        since: a version, to read only what changed after it.
        """
        with reading(self._engine) as connection:
            yield read_pool(connection, encoder, self.horizon(now), since)

    def bodies(self, ids: Iterable[str], limit_chars: int = BODIES_LIMIT_CHARS) -> dict[str, str]:
        """The bodies of those ids that the pool still has, '' for an article without one.

        If together they have more than `limit_chars` characters, the longest are cut to one length (`cut_body`).
        """
        with reading(self._engine) as connection:
            sizes = select(func.length(BodyRow.body)).join(NewsRow, BodyRow.news == NewsRow.number)
            parts = [among(connection, NewsRow.id, wanted) for wanted in chunks(ids)]
            level = longest_whole([n for part in parts for n in connection.scalars(sizes.where(part))], limit_chars)
            # One character more than the limit shows that a text is longer.
            start_of_body = func.coalesce(func.substr(BodyRow.body, 1, level + 1), "")
            query = select(NewsRow.id, start_of_body).outerjoin(BodyRow).where(NewsRow.taken_down_at.is_(None))
            rows = [row for part in parts for row in connection.execute(query.where(part))]
        return {news_id: cut_body(body, level) for news_id, body in rows}

    def texts(self, ids: Iterable[str]) -> dict[str, FullText]:
        """The bodies of those ids that the pool still has, with the addresses of their pictures."""
        bodies = self.bodies(ids := list(ids), limit_chars=BODY_CHARS * max(1, len(ids)))
        named: dict[str, list[str]] = {}
        query = select(NewsRow.id, TextPictureRow.url).join(TextPictureRow, TextPictureRow.news == NewsRow.number)
        with reading(self._engine) as connection:
            for some in chunks(ids):
                one = query.where(among(connection, NewsRow.id, some)).order_by(
                    TextPictureRow.news, TextPictureRow.place
                )
                for news_id, url in connection.execute(one):
                    named.setdefault(news_id, []).append(url)
        return {news_id: FullText(body, tuple(named.get(news_id, ()))) for news_id, body in bodies.items()}

    def missing_vectors(self, encoder: str, since: int | None = None, limit: int | None = None) -> list[PoolRow]:
        """Articles without a vector by this encoder, in order of arrival, without `duplicate_of`.

        since: a version at which all had one, so that only later changes are read. limit: how many; None for all.
        """
        query = (
            select(*COLUMNS, null())
            .outerjoin(VectorRow, (VectorRow.news == NewsRow.number) & (VectorRow.encoder == encoder))
            .where(VectorRow.news.is_(None), NewsRow.taken_down_at.is_(None))
            .order_by(NewsRow.number)
            .limit(limit)
        )
        with reading(self._engine) as connection:
            changed = None if since is None else changed_since(connection, since)
            queries = [query]
            if changed is not None:
                parts = chunks(changed.tolist(), ROWS_PER_FETCH)
                queries = [query.where(among(connection, NewsRow.number, some)) for some in parts]
            rows = chain.from_iterable(map(connection.execute, queries))
            return list(starmap(PoolRow, islice(rows, limit)))

    def store_vectors(
        self,
        encoder: str,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        *,
        titles: Sequence[str] | None = None,
    ) -> int:
        """Store float32 [n, D] vectors of n ids, skipping ids deleted meanwhile; return how many.

        titles: the titles that were encoded; an article whose title has changed since is skipped too. Raises ValueError
        for another shape or type, values that are not finite, or a different number of titles.
        """
        with writing(self._engine) as connection:
            return write_vectors(connection, encoder, ids, vectors, titles)

    def vectors(self, encoder: str) -> tuple[list[str], NDArray[np.float32]]:
        """Ids and vectors, float32 [n, D], of one encoder in order of arrival; [0, 0] if there are none."""
        with reading(self._engine) as connection:
            return read_vectors(connection, encoder)

    def version(self) -> int:
        """A number that grows with every change; equal versions mean an equal pool."""
        with reading(self._engine) as connection:
            return read_version(connection)

    def expire(self, now: datetime) -> int:
        """Remove all articles past their lifetime at `now`, except each feed's newest; return how many.

        Works in transactions of 1,000, so that other writers never wait long.
        """
        expired = 0
        while removed := self._expire_some(now):
            expired += removed
        return expired

    def _expire_some(self, now: datetime) -> int:
        columns = (NewsRow.number, NewsRow.title, NewsRow.abstract, NewsRow.url, NewsRow.source)
        old = select(*columns).where(has_expired(self.horizon(now))).limit(EXPIRED_PER_TRANSACTION)
        with writing(self._engine) as connection:
            lock_version(connection)
            gone = {number: Text(*text) for number, *text in connection.execute(old)}
            if gone:
                unlinked = unlink(connection, gone)
                connection.execute(delete(NewsRow).where(among(connection, NewsRow.number, gone)))
                touched = link(connection, {}, unlinked.orphans).touched
                raise_version(connection, {*gone, *unlinked.originals, *touched})
        return len(gone)

    def take_down(self, news_id: str) -> None:
        """Withdraw an article permanently: its text, body and vectors are deleted, and its id stays blocked.

        Does nothing if it was taken down before. Raises UnknownNews.
        """
        with writing(self._engine) as connection:
            lock_version(connection)
            texts = (NewsRow.title, NewsRow.abstract, NewsRow.url, NewsRow.source)
            query = select(NewsRow.number, NewsRow.taken_down_at, *texts).where(NewsRow.id == news_id)
            found = connection.execute(query).one_or_none()
            if found is None:
                raise UnknownNews(news_id)
            if found.taken_down_at is not None:
                return
            unlinked = unlink(connection, {found.number: Text(*found[2:])})
            connection.execute(delete(BodyRow).where(BodyRow.news == found.number))
            connection.execute(delete(VectorRow).where(VectorRow.news == found.number))
            cleared = {"title": "", "abstract": "", "url": "", "picture": "", "taken_down_at": self._clock()}
            connection.execute(update(NewsRow).where(NewsRow.number == found.number).values(cleared))
            touched = link(connection, {}, unlinked.orphans).touched
            raise_version(connection, {found.number, *unlinked.originals, *touched})

    def counts(self) -> PoolCounts:
        """The pool's counts at one moment; articles past their lifetime count until `expire`."""
        with reading(self._engine) as connection:
            return pool_counts(connection)

    def log(self, source: str, report: IngestReport, failure: str | None = None) -> None:
        """Record a finished run for the console; the pool's version does not change."""
        with writing(self._engine) as connection:
            note_run(connection, source, report, failure, finished_at=self._clock())

    def note_answer(self, source: str, report: IngestReport) -> None:
        """Record the counts of a feed that was not followed yet when it was read."""
        with writing(self._engine) as connection:
            note_answer(connection, source, report)

    def ingests(self, limit: int = 20) -> list[IngestSummary]:
        """The last runs, newest first."""
        with reading(self._engine) as connection:
            return last_runs(connection, limit)
