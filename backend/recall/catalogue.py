"""The catalogue of articles that recall serves: an immutable snapshot of the pool, stored in columns.

It is built from the whole pool, or from the previous catalogue's columns and the changes since. Articles are stored as
JSON bytes, so that an answer is made by joining bytes.
"""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import compress
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from backend.news.pool_reading import NewsBlock, PoolReading, PoolRow
from backend.popularity.estimate import CountSource, Moments, lifts, log_popularity, utc_moments
from backend.recall.default_list import default_order
from backend.recall.indexes.index import NO_KEY, Keys, VectorIndex, Vectors
from backend.recall.indexes.selection import BASIS, IndexRules, IndexStatus
from backend.recall.indexes.store import IndexStore
from backend.recall.indexing import IndexBeingBuilt, Indexed, Turn, index_news
from backend.recall.popularity import PopularNews
from backend.recall.stored_vectors import StoredVectors
from protocol.news import NewsCard
from protocol.recall import CANDIDATES_LIMIT
from protocol.tensors import pack, quantise

T = TypeVar("T")
Column = TypeVar("Column", bound=NDArray[Any])


@dataclass(frozen=True)
class WithheldArticles:
    """Live articles that aren't offered: numbers int64 [m] ascending, and when they count as published."""

    numbers: Keys
    published_at: Moments

    @classmethod
    def of(cls, rows: Sequence[PoolRow]) -> Self:
        """Build from these rows, keeping their order."""
        return cls(np.array([row.number for row in rows], np.int64), utc_moments([row.counted_at for row in rows]))

    @classmethod
    def joined(cls, parts: Sequence[WithheldArticles]) -> Self:
        """The articles of all parts, in that order."""
        numbers = [np.empty(0, np.int64), *(part.numbers for part in parts)]
        return cls(np.concatenate(numbers), np.concatenate([utc_moments([]), *(part.published_at for part in parts)]))

    def __len__(self) -> int:
        return len(self.numbers)

    def changed(self, removed: Keys, horizon: np.datetime64, older: Keys, more: WithheldArticles) -> WithheldArticles:
        """A copy without the numbers in `removed` and without expired articles, and with `more`.

        older: live articles that count as published before the horizon.
        """
        kept = ~np.isin(self.numbers, removed) & ((self.published_at > horizon) | np.isin(self.numbers, older))
        numbers = np.concatenate([self.numbers[kept], more.numbers])
        order = np.argsort(numbers)
        return WithheldArticles(numbers[order], np.concatenate([self.published_at[kept], more.published_at])[order])


@dataclass(frozen=True)
class NewsColumns:
    """Columns of n articles, ascending by number.

    cards are NewsCards as JSON bytes; weights float64 [n] are editorial weights from 0 to 1; published_at is when they
    count as published (`PoolRow.counted_at`).
    """

    numbers: Keys
    published_at: Moments
    weights: NDArray[np.float64]
    ids: tuple[str, ...]
    cards: tuple[bytes, ...]
    sections: tuple[str, ...]
    topics: tuple[str, ...]
    stories: tuple[str | None, ...]

    @classmethod
    def of(cls, rows: Iterable[PoolRow]) -> Self:
        """Build from these rows.

        Each is read once, and equal sections, topics and stories share one string.
        """
        known: dict[str | None, str | None] = {}
        numbers, published, weights, names = [], [], [], ([], [], [], [], [])  # type: ignore[var-annotated]
        ids, cards, sections, topics, stories = names
        for row in rows:
            numbers.append(row.number)
            published.append(row.counted_at)
            weights.append(row.weight)
            ids.append(row.id)
            cards.append(card_of(row).model_dump_json().encode())
            sections.append(known.setdefault(row.section, row.section))
            topics.append(known.setdefault(row.topic, row.topic))
            stories.append(known.setdefault(row.story, row.story))
        return cls(
            np.array(numbers, dtype=np.int64),
            utc_moments(published),
            np.array(weights, dtype=np.float64),
            *(tuple(each) for each in names),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def changed(self, kept: NDArray[np.bool_], before: NDArray[np.intp], more: NewsColumns) -> NewsColumns:
        """A copy with the rows in kept [n], and with `more` inserted before the kept rows at `before` (ascending)."""
        places = before.tolist()

        def inserted(column: Column, new: Column) -> Column:
            return np.insert(column if kept.all() else column[kept], before, new)  # type: ignore[return-value]

        return NewsColumns(
            inserted(self.numbers, more.numbers),
            inserted(self.published_at, more.published_at),
            inserted(self.weights, more.weights),
            _merged(self.ids, kept, places, more.ids),
            _merged(self.cards, kept, places, more.cards),
            _merged(self.sections, kept, places, more.sections),
            _merged(self.topics, kept, places, more.topics),
            _merged(self.stories, kept, places, more.stories),
        )


@dataclass(frozen=True)
class OfferedNews:
    """Live articles that have a vector and aren't near-duplicates of older live ones, and the articles withheld."""

    columns: NewsColumns
    vectors: StoredVectors
    duplicates: WithheldArticles
    without_vector: WithheldArticles

    @classmethod
    def of(cls, reading: PoolReading, folder: Path | None) -> Self:
        """Build from a reading of the whole pool.

        folder: where the vectors of a large pool are mapped.
        """
        duplicates: list[WithheldArticles] = []
        without: list[WithheldArticles] = []
        vectors: list[StoredVectors] = []

        def offered() -> Iterator[PoolRow]:
            for block in reading.blocks:
                some, more = _sorted_out(block, duplicates, without)
                if len(some):
                    none = StoredVectors.room_for(reading.vectors, more.shape[1], folder)
                    vectors.append((vectors.pop() if vectors else none).extended(more, folder))
                yield from some

        columns = NewsColumns.of(offered())
        stored = vectors[0] if vectors else StoredVectors.room_for(0, 0, None)
        return cls(columns, stored, WithheldArticles.joined(duplicates), WithheldArticles.joined(without))

    def changed(self, reading: PoolReading, folder: Path | None) -> OfferedNews:
        """A copy with what has changed and without what has expired.

        Raises ValueError if `reading` is of the whole pool.
        """
        if reading.changed is None:
            raise ValueError("reading: the copy holds the whole pool, so nothing can be added")
        duplicates: list[WithheldArticles] = []
        without: list[WithheldArticles] = []
        found = [_sorted_out(block, duplicates, without) for block in reading.blocks]
        more = NewsColumns.of(row for rows, _ in found for row in rows)
        parts = [vectors for _, vectors in found if len(vectors)]
        vectors = np.concatenate(parts) if parts else np.empty((0, self.vectors.shape[1]), dtype=np.float32)
        removed, at = reading.changed, utc_moments([reading.horizon])[0]
        columns = self.columns
        places = np.searchsorted(columns.numbers, removed).clip(max=max(0, len(columns) - 1))
        kept = (columns.published_at > at) | np.isin(columns.numbers, reading.older)
        kept[places[columns.numbers[places] == removed] if len(columns) else places[:0]] = False
        before = np.searchsorted(columns.numbers[kept], more.numbers)
        held = self._held(more.numbers, vectors)
        return OfferedNews(
            columns.changed(kept, before, more),
            self.vectors.changed(kept, before, vectors, folder, held),
            self.duplicates.changed(removed, at, reading.older, WithheldArticles.joined(duplicates)),
            self.without_vector.changed(removed, at, reading.older, WithheldArticles.joined(without)),
        )

    def _held(self, numbers: Keys, vectors: NDArray[np.float32]) -> NDArray[np.intp]:
        """Return for articles [m] with vectors [m, D] the rows whose vectors are already stored; -1 for the others."""
        if not len(self.columns):
            return np.full(len(numbers), -1, dtype=np.intp)
        rows = np.searchsorted(self.columns.numbers, numbers).clip(max=len(self.columns) - 1)
        equal = (self.vectors[rows].view(np.uint32) == vectors.view(np.uint32)).all(axis=1)  # bit by bit
        same = (self.columns.numbers[rows] == numbers) & equal
        return np.where(same, rows, -1)


def _sorted_out(
    block: NewsBlock, duplicates: list[WithheldArticles], without: list[WithheldArticles]
) -> tuple[list[PoolRow], NDArray[np.float32]]:
    """Return the block's offered rows and their vectors [m, D].

    Append the other rows to the two lists, without their texts.
    """
    rows, coded = [], []
    repeating: list[PoolRow] = []
    waiting: list[PoolRow] = []
    for row, vector in zip(*block, strict=True):
        if row.duplicate_of is not None:
            repeating.append(row)
        elif vector is None:
            waiting.append(row)
        else:
            rows.append(row)
            coded.append(vector)
    duplicates.append(WithheldArticles.of(repeating))
    without.append(WithheldArticles.of(waiting))
    joined = np.frombuffer(b"".join(coded), dtype="<f4")
    return rows, joined.reshape(len(rows), -1) if rows else np.empty((0, 0), dtype=np.float32)


def _merged(mine: tuple[T, ...], kept: NDArray[np.bool_], before: Sequence[int], more: Sequence[T]) -> tuple[T, ...]:
    left = mine if kept.all() else tuple(compress(mine, kept.tobytes()))
    if not more:
        return left
    if before[0] == len(left):
        return (*left, *more)
    parts: list[T] = []
    start = 0
    for place, item in zip(before, more, strict=True):
        parts += left[start:place]
        parts.append(item)
        start = place
    return (*parts, *left[start:])


def card_of(row: PoolRow) -> NewsCard:
    """The card of an article, as devices get it."""
    return NewsCard(
        id=row.id,
        title=row.title,
        abstract=row.abstract,
        url=row.url,
        publisher=row.publisher,
        section=row.section,
        topic=row.topic,
        story=row.story,
        published_at=row.published_at,
        dated=row.dated,
        weight=row.weight,
        also=row.also,
    )


_NO_RULES = IndexRules()


class ReadablePool(Protocol):
    """The part of `backend.news.pool.NewsPool` that a catalogue is built from."""

    def version(self) -> int:
        """A number that grows with every change."""
        ...

    def reading(self, encoder: str, now: datetime, since: int | None = None) -> AbstractContextManager[PoolReading]:
        """Open a consistent reading of the pool."""
        ...


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What recall offers: live articles that have a vector and aren't near-duplicates of older live ones.

    Row r of every member is the same article. news are the articles' columns, from which the next catalogue is built;
    vectors [n, D] are their vectors. lifts float32 [n] come from the private counts up to round `counted` (0: none
    yet). log_popularity [n] combines recency, editorial weight and lifts; `popular` makes lists by it. default_list
    holds rows in the order of the default list. A search that began on a snapshot ends on it.
    """

    pool_version: int
    encoder: str
    news: OfferedNews
    vectors: StoredVectors
    counted: int
    lifts: NDArray[np.float32]
    log_popularity: NDArray[np.float32]
    popular: PopularNews
    default_list: tuple[int, ...]
    index: VectorIndex
    status: IndexStatus
    indexed: Indexed
    built_at: datetime
    build_sec: float

    def __len__(self) -> int:
        return len(self.news.columns)

    @property
    def ids(self) -> tuple[str, ...]:
        """[n]"""
        return self.news.columns.ids

    @property
    def keys(self) -> Keys:
        """The pool's numbers of the articles [n], ascending."""
        return self.news.columns.numbers

    @property
    def cards(self) -> tuple[bytes, ...]:
        """NewsCards as JSON bytes [n]."""
        return self.news.columns.cards

    @property
    def published_at(self) -> Moments:
        """[n]"""
        return self.news.columns.published_at

    @property
    def weights(self) -> NDArray[np.float64]:
        """Editorial weights [n]."""
        return self.news.columns.weights

    @property
    def newest_at(self) -> datetime | None:
        """When the newest article was published; None for an empty catalogue."""
        return self.published_at.max().item().replace(tzinfo=UTC) if len(self) else None

    @property
    def duplicates(self) -> int:
        """How many live articles are left out as near-duplicates of older ones."""
        return len(self.news.duplicates)

    @property
    def without_vector(self) -> int:
        """How many live articles wait for their vector."""
        return len(self.news.without_vector)

    @property
    def by_basis(self) -> bool:
        """Whether scores are answered by a scan of the release's basis.

        Then the index is not used for them.
        """
        return self.status.kind == BASIS

    def search(self, queries: Vectors, k: int) -> list[list[int]]:
        """For each query [c, D], the rows of the k nearest articles, best first."""
        if not len(self):
            return [[] for _ in queries]
        _, found = self.index.search(queries, k)
        rows = np.searchsorted(self.keys, found)  # [c, k]
        if len(self) >= k and (found[:, -1] != NO_KEY).all():
            return rows.tolist()  # type: ignore[no-any-return]
        return [line[line_keys != NO_KEY].tolist() for line, line_keys in zip(rows, found, strict=True)]

    def popular_near(self, queries: Vectors, k: int, *, sharpness: float) -> list[list[int]]:
        """For each query v [c, D], the k rows with the greatest sharpness <v, d> + log pop(d), best first."""
        if not len(self):
            return [[] for _ in queries]
        return self.popular.near(queries, self.search(queries, min(len(self), k)), k, sharpness=sharpness)

    def encode(self, rows: Sequence[int], release: str, order: Sequence[int] | None = None) -> bytes:
        """These rows as the JSON of a RecallAnswer, byte for byte what pydantic would write.

        order: that of a DefaultListAnswer of changes.
        """
        picked = np.fromiter(rows, dtype=np.intp, count=len(rows))
        vectors = urlsafe_b64encode(pack(quantise(self.vectors[picked])))
        return b"".join(
            (
                b'{"release":',
                json.dumps(release).encode(),
                b',"encoder":',
                json.dumps(self.encoder).encode(),
                b',"candidates":[',
                b",".join([self.cards[row] for row in rows]),
                b'],"vectors":"',
                vectors,
                b'"}' if order is None else b'","order":' + json.dumps(order, separators=(",", ":")).encode() + b"}",
            )
        )


def build_catalogue(
    pool: ReadablePool,
    encoder_digest: str,
    now: datetime,
    kept: IndexStore,
    *,
    rules: IndexRules = _NO_RULES,
    previous: Catalogue | None = None,
    counts: CountSource | None = None,
    turn: Turn = lambda: nullcontext(True),
) -> Catalogue:
    """Read the pool and index it; return the catalogue.

    previous: a catalogue of the same encoder, of which everything unchanged is reused as far back as the pool's log of
    changes reaches. counts: the private counts of clicks. kept and turn: as in `index_news`, whose errors it raises.
    """
    started = time.perf_counter()
    lender = previous if previous is not None and len(previous) and previous.encoder == encoder_digest else None
    stored = 0 if lender is None else lender.vectors.filled
    with pool.reading(encoder_digest, now, None if lender is None else lender.pool_version) as reading:
        if lender is None or reading.changed is None:
            news = OfferedNews.of(reading, kept.local)
        else:
            news = lender.news.changed(reading, kept.local)
    columns, vectors = news.columns, news.vectors
    try:
        indexed = index_news(
            columns.numbers,
            vectors,
            previous=None if lender is None else lender.indexed,
            kept=kept,
            encoder=encoder_digest,
            pool_version=reading.version,
            rules=rules,
            turn=turn,
        )
    except IndexBeingBuilt:
        if lender is not None:  # the next attempt adds them again
            lender.vectors.taken_back(stored)
        raise
    lifted = lifts(counts, columns.numbers, columns.topics, now)
    popularity = log_popularity(columns.published_at, columns.weights, now, lifts=lifted.values)
    return Catalogue(
        pool_version=reading.version,
        encoder=encoder_digest,
        news=news,
        vectors=vectors,
        counted=lifted.version,
        lifts=lifted.values,
        log_popularity=popularity,
        popular=PopularNews.of(vectors, popularity),
        default_list=tuple(default_order(columns, now, CANDIDATES_LIMIT, lifted.values)),
        index=indexed.index,
        status=indexed.status,
        indexed=indexed,
        built_at=now,
        build_sec=time.perf_counter() - started,
    )


class LiveCatalogue:
    """Holds the catalogue that serves.

    A reader takes `current` once and works on it; a swap is one assignment.
    """

    def __init__(self, first: Catalogue) -> None:
        self._current = first

    @property
    def current(self) -> Catalogue:
        """The catalogue that serves now."""
        return self._current

    def swap(self, new: Catalogue) -> None:
        """Replace the current catalogue; requests in progress keep the previous one."""
        self._current = new
