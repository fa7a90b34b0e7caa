"""Recall on the device: scores the pool's product-quantised codes by asymmetric distance.

See docs/decisions/021.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.store.news import NewsStore
from device_app.store.pool_codes import PoolStore, StoredPool
from protocol.broadcast import unpack_book, unpack_codes, unpack_priors
from protocol.news import NewsCard
from protocol.tensors import TensorError
from protocol.text_catalogue import TextCatalogue

NOTICES = TextCatalogue("device_app.feed", "notices.toml")
CARDS_HELD = 4_000
"""Cards of the pool held in memory, about ten lists of candidates: reading them takes longer than finding them."""


class PoolBroken(Exception):
    """Parts of the stored pool are missing or differ from what was verified on arrival."""


@dataclass(frozen=True)
class CodedPool:
    """n articles as codes: d_i = concat_m centroids[m, codes[m, i]], M parts of D / M numbers.

    codes is uint8 [M, n], one row per subspace, so that each table lookup reads contiguous memory. centroids is float32
    [M, 256, D / M], priors float32 [n] (log popularity), and sharpness is the scale s.
    """

    codes: NDArray[np.uint8]
    centroids: NDArray[np.float32]
    priors: NDArray[np.float32]
    sharpness: float

    def __len__(self) -> int:
        return len(self.priors)

    def scores(self, user: NDArray[np.float32], *, priors: bool = True) -> NDArray[np.float32]:
        """Return s <user, d_i> + prior_i for every row, [n]; user is a unit vector [D].

        priors: False leaves the prior out. The scores come from one table of 256 inner products per subspace and M
        lookups per row; no vector of the pool is reconstructed.
        """
        M, _, width = self.centroids.shape
        tables = self.sharpness * np.einsum("mkw,mw->mk", self.centroids, user.reshape(M, width))  # [M, 256]
        total = self.priors.copy() if priors else np.zeros_like(self.priors)
        for table, codes in zip(tables.astype(np.float32), self.codes, strict=True):
            total += table.take(codes)
        return total

    def best(self, user: NDArray[np.float32], limit: int, *, priors: bool = True) -> NDArray[np.intp]:
        """Return the rows of the `limit` highest scores, best first; ties go to the lower row."""
        scores = self.scores(user, priors=priors)
        limit = min(limit, len(scores))
        if limit == 0:
            return np.empty(0, dtype=np.intp)
        # Take everything at or above the limit-th score, then sort: a partition alone breaks ties arbitrarily.
        edge = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        rows = np.flatnonzero(scores >= edge)
        found: NDArray[np.intp] = rows[np.argsort(-scores[rows], kind="stable")][:limit]
        return found

    def vectors(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return d_i of these rows, [len(rows), D]: the article vectors as quantised."""
        M, _, width = self.centroids.shape
        parts = self.centroids[np.arange(M)[None, :], self.codes[:, rows].T]  # [rows, M, D / M]
        found: NDArray[np.float32] = parts.reshape(len(rows), M * width)
        return found


class Broadcast:
    """Finds articles in the stored pool.

    Holds its codes in memory (16 or 32 bytes per article), and the cards found recently.
    """

    def __init__(self, pool: PoolStore, news: NewsStore) -> None:
        self._pool = pool
        self._news = news
        self._coded: tuple[StoredPool, CodedPool] | None = None
        self._cards: tuple[StoredPool | None, dict[int, NewsCard]] = (None, {})

    def ready(self, encoder: str) -> bool:
        """Return whether a complete pool of this encoder is stored."""
        kept = self._pool.current()
        return kept is not None and kept.listing.encoder == encoder

    def find(self, user: NDArray[np.float32], limit: int, encoder: str, *, priors: bool = True) -> Candidates:
        """Return the best articles for a unit vector [D], with their cards and vectors, best first.

        priors: whether popularity counts. Vectors are exact where the article is stored, else decoded from the codes.
        Raises PoolBroken.
        """
        kept = self._pool.current()
        if kept is None or kept.listing.encoder != encoder:
            raise PoolBroken(NOTICES("pool_broken"))
        coded = self._loaded(kept, len(user))
        rows = coded.best(user, limit, priors=priors)
        cards = self._cards_of(kept, rows)
        vectors = coded.vectors(rows)
        here, exact = self._news.vectors([card.id for card in cards], encoder)
        if here.any():
            vectors[here] = exact[here]
        found = Candidates(tuple(cards), vectors, encoder)
        _, first = np.unique(found.ids, return_index=True)
        return found if len(first) == len(found) else found.only(np.sort(first))

    def coded(self, ids: Sequence[str], encoder: str, dimensions: int) -> NDArray[np.float32]:
        """Return the decoded vectors [n, D] of articles in the pool.

        Raises PoolBroken if one is missing.
        """
        kept = self._pool.current()
        if kept is None or kept.listing.encoder != encoder:
            raise PoolBroken(NOTICES("pool_broken"))
        starts = np.cumsum([0, *(shard.count for shard in kept.listing.shards)]).tolist()
        first = {shard.cards.sha256: start for shard, start in zip(kept.listing.shards, starts, strict=False)}
        places = self._pool.places(ids)
        try:
            rows = [first[places[news_id][0]] + places[news_id][1] for news_id in ids]
        except KeyError as missing:
            raise PoolBroken(NOTICES("pool_broken")) from missing
        return self._loaded(kept, dimensions).vectors(np.array(rows, dtype=np.intp))

    def forget(self) -> None:
        """Drop the codes and cards from memory."""
        self._coded = None
        self._cards = (None, {})

    def discard(self) -> None:
        """Delete a damaged pool, so that the next sync downloads all of it again."""
        self.forget()
        self._pool.drop()

    def _cards_of(self, kept: StoredPool, rows: NDArray[np.intp]) -> list[NewsCard]:
        of_pool, known = self._cards
        held = dict(known) if of_pool is kept else {}
        missing = np.array([row for row in rows.tolist() if row not in held], dtype=np.intp)
        starts = np.cumsum([0, *(shard.count for shard in kept.listing.shards)])
        shards = np.searchsorted(starts, missing, side="right") - 1
        names = [shard.cards.sha256 for shard in kept.listing.shards]
        read = self._pool.cards(
            (names[shard], int(row - starts[shard])) for shard, row in zip(shards, missing, strict=True)
        )
        if len(read) != len(missing):
            raise PoolBroken(NOTICES("pool_broken"))
        held.update(zip(missing.tolist(), read, strict=True))
        self._cards = (kept, held if len(held) <= CARDS_HELD else {})
        return [held[row] for row in rows.tolist()]

    def _loaded(self, kept: StoredPool, dimensions: int) -> CodedPool:
        held = self._coded
        if held is not None and held[0] is kept:
            return held[1]
        listing = kept.listing
        try:
            codes = [
                unpack_codes(self._part(shard.codes.sha256), shard.count, listing.subspaces) for shard in listing.shards
            ]
            coded = CodedPool(
                np.ascontiguousarray(np.concatenate([np.empty((0, listing.subspaces), np.uint8), *codes]).T),
                unpack_book(self._part(listing.book.sha256), listing.subspaces, dimensions),
                unpack_priors(self._part(listing.priors.sha256), listing.count),
                listing.sharpness,
            )
        except TensorError as broken:
            raise PoolBroken(NOTICES("pool_broken")) from broken
        self._coded = (kept, coded)
        return coded

    def _part(self, digest: str) -> bytes:
        content = self._pool.part(digest)
        if content is None:
            raise PoolBroken(NOTICES("pool_broken"))
        return content
