"""An immutable snapshot of the pool, laid out so that answering is joining bytes."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.news.pool_reading import PoolReading
from backend.popularity.estimate import Counts, lifts
from backend.popularity.prior import Moments, log_popularity
from backend.recall.default_list import default_order
from backend.recall.index import NO_KEY, Keys, VectorIndex, Vectors
from backend.recall.index_selection import BASIS, IndexStatus
from backend.recall.index_store import IndexStore
from backend.recall.indexing import IndexBeingBuilt, Indexed, IndexRules, Turn, index_news
from backend.recall.offered_news import OfferedNews
from backend.recall.popularity import PopularNews
from backend.recall.stored_vectors import StoredVectors
from device_app.wire.recall import CANDIDATES_LIMIT
from device_app.wire.tensors import pack, quantise

_NO_RULES = IndexRules()


class ReadPool(Protocol):
    """The part of `backend.news.pool.NewsPool` that a catalogue is built from."""

    def version(self) -> int:
        """Another, and a larger one, after every change."""
        ...

    def reading(self, encoder: str, now: datetime, since: int | None = None) -> AbstractContextManager[PoolReading]:
        """One moment of it."""
        ...


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What recall offers: live news that have a vector and aren't a near-duplicate of an older live one.

    Row r of every member is the same piece of news. news are their columns, and what the next catalogue is made from;
    vectors [n, D] are its vectors. lifts float32 [n] are what private counts say until round `counted` (0: none yet),
    and log_popularity [n] is recency, editorial weight and they; popular makes lists by it. default_list holds rows in
    its order. Searches that began on a snapshot end on it.
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
        """The pool's numbers [n], ascending."""
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
        """When the last of them was published; None of an empty catalogue."""
        return self.published_at.max().item().replace(tzinfo=UTC) if len(self) else None

    @property
    def duplicates(self) -> int:
        """Live news that are left out since older ones say the same."""
        return len(self.news.duplicates)

    @property
    def without_vector(self) -> int:
        """Live news that wait for their vector."""
        return len(self.news.without_vector)

    @property
    def by_basis(self) -> bool:
        """Whether scores are answered by a scan of the release's basis, the index being there for want of another."""
        return self.status.kind == BASIS

    def search(self, queries: Vectors, k: int) -> list[list[int]]:
        """For each query [c, D] the rows of the k news nearest to it, best first."""
        if not len(self):
            return [[] for _ in queries]
        _, found = self.index.search(queries, k)
        rows = np.searchsorted(self.keys, found)  # [c, k]
        if len(self) >= k and (found[:, -1] != NO_KEY).all():
            return rows.tolist()  # type: ignore[no-any-return]
        return [line[line_keys != NO_KEY].tolist() for line, line_keys in zip(rows, found, strict=True)]

    def popular_near(self, queries: Vectors, k: int, *, sharpness: float) -> list[list[int]]:
        """For each query v [c, D] the k rows with the greatest sharpness <v, d> + log pop(d), best first."""
        if not len(self):
            return [[] for _ in queries]
        return self.popular.near(queries, self.search(queries, min(len(self), k)), k, sharpness=sharpness)

    def encode(self, rows: Sequence[int], release: str) -> bytes:
        """These rows as the JSON of a RecallAnswer, byte for byte what pydantic would write."""
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
                b'"}',
            )
        )


def build_catalogue(
    pool: ReadPool,
    encoder_digest: str,
    now: datetime,
    kept: IndexStore,
    *,
    rules: IndexRules = _NO_RULES,
    previous: Catalogue | None = None,
    counts: Counts | None = None,
    turn: Turn = lambda: nullcontext(True),
) -> Catalogue:
    """Read the pool and index it. Of a catalogue `previous` by the same encoder all is taken that hasn't changed since,
    as far back as the pool's log of changes reaches; counts are what is known of clicks; kept and turn: as of
    `index_news`, and what it raises."""
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
        if lender is not None:  # whoever asks again adds them again
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
    """Holds the catalogue that serves. Readers take `current` once and work on it; swapping is one assignment."""

    def __init__(self, first: Catalogue) -> None:
        self._current = first

    @property
    def current(self) -> Catalogue:
        """The catalogue that serves now."""
        return self._current

    def swap(self, new: Catalogue) -> None:
        """Let the next reader see `new`; those at work keep theirs."""
        self._current = new
