"""What a catalogue offers, in columns, made of the whole pool or of the last catalogue's columns and the changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from backend.news.pool_reading import NewsBlock, PoolReading, PoolRow
from backend.popularity.prior import Moments, utc_moments
from backend.recall.index import Keys
from backend.recall.stored_vectors import StoredVectors
from device_app.wire.news import NewsCard

T = TypeVar("T")
Column = TypeVar("Column", bound=NDArray[Any])


@dataclass(frozen=True)
class Withheld:
    """Live news that aren't offered: numbers int64 [m] ascending, and when they were published."""

    numbers: Keys
    published_at: Moments

    @classmethod
    def of(cls, rows: Sequence[PoolRow]) -> Self:
        """These, in their order."""
        return cls(np.array([row.number for row in rows], np.int64), utc_moments([row.published_at for row in rows]))

    def __len__(self) -> int:
        return len(self.numbers)

    def changed(self, gone: Keys, horizon: np.datetime64, more: Withheld) -> Withheld:
        """Without the numbers gone and what has expired, and with more."""
        kept = ~np.isin(self.numbers, gone) & (self.published_at > horizon)
        numbers = np.concatenate([self.numbers[kept], more.numbers])
        order = np.argsort(numbers)
        return Withheld(numbers[order], np.concatenate([self.published_at[kept], more.published_at])[order])


@dataclass(frozen=True)
class NewsColumns:
    """n news, ascending by number. cards are NewsCards as JSON bytes; weights float64 [n] editorial, 0 to 1."""

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
        """These rows; each is read once, and equal sections, topics and stories are one string."""
        known: dict[str | None, str | None] = {}
        numbers, published, weights, names = [], [], [], ([], [], [], [], [])  # type: ignore[var-annotated]
        ids, cards, sections, topics, stories = names
        for row in rows:
            numbers.append(row.number)
            published.append(row.published_at)
            weights.append(row.weight)
            ids.append(row.id)
            cards.append(_card(row).model_dump_json().encode())
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
        """Those kept [n], with more put before the kept ones that `before`, ascending, names."""
        places = before.tolist()

        def inserted(mine: Column, theirs: Column) -> Column:
            return np.insert(mine if kept.all() else mine[kept], before, theirs)  # type: ignore[return-value]

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
    """Live news that have a vector and aren't a near-duplicate of an older live one; beside them what is withheld."""

    columns: NewsColumns
    vectors: StoredVectors
    duplicates: Withheld
    without_vector: Withheld

    @classmethod
    def of(cls, reading: PoolReading, folder: Path | None) -> Self:
        """All of a reading of the whole pool. folder: for the vectors of a large one."""
        duplicates: list[PoolRow] = []
        without: list[PoolRow] = []
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
        return cls(columns, stored, Withheld.of(duplicates), Withheld.of(without))

    def changed(self, reading: PoolReading, folder: Path | None) -> OfferedNews:
        """These with what has changed, and without what has expired. Raises ValueError for a reading of all."""
        if reading.changed is None:
            raise ValueError("reading: holds the whole pool")
        duplicates: list[PoolRow] = []
        without: list[PoolRow] = []
        found = [_sorted_out(block, duplicates, without) for block in reading.blocks]
        more = NewsColumns.of(row for rows, _ in found for row in rows)
        parts = [vectors for _, vectors in found if len(vectors)]
        vectors = np.concatenate(parts) if parts else np.empty((0, self.vectors.shape[1]), dtype=np.float32)
        gone, at = reading.changed, utc_moments([reading.horizon])[0]
        columns = self.columns
        places = np.searchsorted(columns.numbers, gone).clip(max=max(0, len(columns) - 1))
        kept = columns.published_at > at
        kept[places[columns.numbers[places] == gone] if len(columns) else places[:0]] = False
        before = np.searchsorted(columns.numbers[kept], more.numbers)
        held = self._held(more.numbers, vectors)
        return OfferedNews(
            columns.changed(kept, before, more),
            self.vectors.changed(kept, before, vectors, folder, held),
            self.duplicates.changed(gone, at, Withheld.of(duplicates)),
            self.without_vector.changed(gone, at, Withheld.of(without)),
        )

    def _held(self, numbers: Keys, vectors: NDArray[np.float32]) -> NDArray[np.intp]:
        """Of these news [m] and their vectors [m, D] the rows whose vectors are stored already, -1 for the others."""
        if not len(self.columns):
            return np.full(len(numbers), -1, dtype=np.intp)
        rows = np.searchsorted(self.columns.numbers, numbers).clip(max=len(self.columns) - 1)
        equal = (self.vectors[rows].view(np.uint32) == vectors.view(np.uint32)).all(axis=1)  # in every bit
        same = (self.columns.numbers[rows] == numbers) & equal
        return np.where(same, rows, -1)


def _sorted_out(
    block: NewsBlock, duplicates: list[PoolRow], without: list[PoolRow]
) -> tuple[list[PoolRow], NDArray[np.float32]]:
    """The block's offered rows with their vectors [m, D]; the others go to the lists."""
    rows, coded = [], []
    for row, vector in zip(*block, strict=True):
        if row.duplicate_of is not None:
            duplicates.append(row)
        elif vector is None:
            without.append(row)
        else:
            rows.append(row)
            coded.append(vector)
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


def _card(row: PoolRow) -> NewsCard:
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
        weight=row.weight,
    )
