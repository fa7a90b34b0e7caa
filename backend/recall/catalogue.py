"""An immutable snapshot of the pool, laid out so that answering is joining bytes."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.news.pool import PoolRow
from backend.popularity.estimate import Counts, lifts
from backend.popularity.prior import log_popularity
from backend.recall.default_list import default_order
from backend.recall.index import NO_KEY, Keys, VectorIndex, Vectors
from backend.recall.index_selection import BASIS, IndexStatus
from backend.recall.index_store import IndexStore
from backend.recall.indexing import Indexed, IndexRules, Turn, index_news
from backend.recall.mapped_vectors import mapped
from backend.recall.popularity import PopularNews
from device_app.wire.news import NewsCard
from device_app.wire.recall import CANDIDATES_LIMIT
from device_app.wire.tensors import pack, quantise

_NO_RULES = IndexRules()


class ReadPool(Protocol):
    """The part of `backend.news.pool.NewsPool` that a catalogue is built from."""

    def version(self) -> int:
        """The number of changes so far."""
        ...

    def live(self, now: datetime) -> list[PoolRow]:
        """All news on offer, in the order of arrival."""
        ...

    def vectors(self, encoder: str) -> tuple[list[str], NDArray[np.float32]]:
        """Ids and vectors [n, D]."""
        ...


@dataclass(frozen=True)
class Catalogue:
    """What recall offers: live news that have a vector and aren't a near-duplicate of an older live one.

    Row r of every member is the same piece of news. keys ascend and are the pool's numbers; codes int8 [n, D] and
    scales float32 [n] are the wire's form of the vectors; cards are NewsCards as JSON bytes; front holds rows in the
    order of the default list. lifts float32 [n] are what private counts say until round `counted` (0: none yet), and
    log_popularity [n] is recency, editorial weight and they; popular makes lists by it. Searches that began on a
    snapshot end on it.
    """

    pool_version: int
    encoder: str
    ids: tuple[str, ...]
    keys: Keys
    vectors: Vectors
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    cards: tuple[bytes, ...]
    published_at: tuple[datetime, ...]
    weights: NDArray[np.float32]
    counted: int
    lifts: NDArray[np.float32]
    log_popularity: NDArray[np.float32]
    popular: PopularNews
    default_list: tuple[int, ...]
    index: VectorIndex
    status: IndexStatus
    indexed: Indexed
    duplicates: int
    without_vector: int
    built_at: datetime
    build_sec: float

    def __len__(self) -> int:
        return len(self.ids)

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
        vectors = urlsafe_b64encode(pack({"codes": self.codes[picked], "scales": self.scales[picked]}))
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
    """Read the pool and index it. `previous` lends its index, into a copy of which the changes are worked; counts are
    what is known of clicks; kept and turn: as of `index_news`, and what it raises."""
    started = time.perf_counter()
    pool_version = pool.version()  # read first: a change during the build shows as a newer version afterwards
    live = pool.live(now)
    row_of = {row.id: row for row in live if row.duplicate_of is None}
    ids, vectors = pool.vectors(encoder_digest)
    offered = [place for place, news_id in enumerate(ids) if news_id in row_of]
    news = [row_of[ids[place]] for place in offered]
    vectors = np.ascontiguousarray(vectors[offered])
    if kept.local is not None:
        vectors = mapped(vectors, kept.local)
    keys = np.array([row.number for row in news], dtype=np.int64)
    lender = previous.indexed if previous is not None and previous.encoder == encoder_digest else None
    indexed = index_news(
        keys,
        vectors,
        previous=lender,
        kept=kept,
        encoder=encoder_digest,
        pool_version=pool_version,
        rules=rules,
        turn=turn,
    )
    coded = quantise(vectors)
    lifted = lifts(counts, keys, [row.topic for row in news], now)
    published_at = tuple(row.published_at for row in news)
    weights = np.array([row.weight for row in news], dtype=np.float32)
    popularity = log_popularity(published_at, weights, now, lifts=lifted.values)
    return Catalogue(
        pool_version=pool_version,
        encoder=encoder_digest,
        ids=tuple(row.id for row in news),
        keys=keys,
        vectors=vectors,
        codes=coded["codes"],
        scales=coded["scales"],
        cards=tuple(_card(row).model_dump_json().encode() for row in news),
        published_at=published_at,
        weights=weights,
        counted=lifted.version,
        lifts=lifted.values,
        log_popularity=popularity,
        popular=PopularNews.of(vectors, popularity),
        default_list=tuple(default_order(news, now, CANDIDATES_LIMIT, lifted.values)),
        index=indexed.index,
        status=indexed.status,
        indexed=indexed,
        duplicates=len(live) - len(row_of),
        without_vector=len(row_of) - len(news),
        built_at=now,
        build_sec=time.perf_counter() - started,
    )


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
