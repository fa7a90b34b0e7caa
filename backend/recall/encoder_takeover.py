"""A new news encoder takes over on the server: the pool's vectors by it come first, then the catalogue of them, and
devices hear of its release last.

What the catalogue was built by answers until then: releases of the encoder before (`served_releases`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.embedding.batch_executor import ClusterUnavailable
from backend.errors import OwnfeedError
from backend.news.pool_reading import PoolRow
from backend.recall.catalogue import Catalogue
from backend.recall.indexing import Turn
from backend.releases.reader import ReleaseReader
from device_app.wire.releases import SignedManifest

TITLES_AT_ONCE = 512
"""Embedded, stored and shown together, so that a large ingest appears bit by bit and a stop waits a few seconds."""

EMBEDDING = "embed-titles"
"""The turn of the process that embeds titles: a server, or what prepares one in the background."""

_log = logging.getLogger(__name__)


class EmbeddedPool(Protocol):
    """The part of `backend.news.pool.NewsPool` that gets vectors."""

    def version(self) -> int:
        """Another, and a larger one, after every change."""
        ...

    def missing_vectors(self, encoder: str, since: int | None = None) -> list[PoolRow]:
        """News without a vector."""
        ...

    def store_vectors(
        self, encoder: str, ids: Sequence[str], vectors: NDArray[np.float32], *, titles: Sequence[str] | None = None
    ) -> int:
        """Store vectors [n, D]."""
        ...


class TitleEmbedder(Protocol):
    """The part of `backend.embedding.embedder.Embedder` that the pool's vectors need."""

    digest: str

    def encode(self, titles: Sequence[str]) -> NDArray[np.float32]:
        """float32 [n, D]"""
        ...

    def encode_news(self, news: Sequence[PoolRow]) -> NDArray[np.float32]:
        """By all that the encoder reads of them."""
        ...


class PoolEmbedding:
    """Gives the pool its vectors by the encoder of the current release, whichever that is by now.

    turn: whether it's this process that embeds while the block runs (EMBEDDING); where another does, nothing is done.
    """

    def __init__(self, pool: EmbeddedPool, open_encoder: Callable[[], TitleEmbedder], turn: Turn) -> None:
        self._pool, self._open_encoder, self._turn = pool, open_encoder, turn
        self._encoder: TitleEmbedder | None = None
        self._complaint = self._away = ""
        self._complete: tuple[str, int] | None = None
        """By this encoder no news lacked a vector at this version of the pool."""

    def step(self, digest: str) -> tuple[int, bool]:
        """Embed up to TITLES_AT_ONCE titles without a vector; how many were stored, and whether more are left."""
        with self._turn() as mine:
            version, missing = self._pool.version(), self._missing(digest) if mine else []
            if mine and not missing:
                self._complete = (digest, version)
            encoder = self.encoder(digest) if missing else None
            if encoder is None:
                return 0, False
            batch, stored = missing[:TITLES_AT_ONCE], 0
            with self.complaining():
                vectors, titles = encoder.encode_news(batch), [news.title for news in batch]
                stored = self._pool.store_vectors(digest, [news.id for news in batch], vectors, titles=titles)
                self._away = ""
        return stored, stored > 0 and len(missing) > len(batch)

    @contextmanager
    def complaining(self) -> Iterator[None]:
        """What the encoder computes with may be away: one line in the log, and news wait for it, but nothing else."""
        try:
            yield
        except ClusterUnavailable as away:
            if away.detail != self._away:
                _log.error("new news can't be embedded: %s", away.detail)
            self._away = away.detail

    def _missing(self, digest: str) -> list[PoolRow]:
        is_known = self._complete is not None and self._complete[0] == digest
        return self._pool.missing_vectors(digest, self._complete[1] if is_known and self._complete else None)

    def encoder(self, digest: str) -> TitleEmbedder | None:
        """The encoder of this digest, or None with one line in the log: new news then wait unseen."""
        complaint = ""
        if self._encoder is None or self._encoder.digest != digest:
            try:
                self._encoder = self._open_encoder()
            except OwnfeedError as missing:
                complaint = missing.detail
        if self._encoder is not None and self._encoder.digest != digest:
            complaint = f"the prepared encoder is {self._encoder.digest[:12]}, the release needs {digest[:12]}"
        if complaint and complaint != self._complaint:
            _log.error("new news can't be embedded: %s", complaint)
        self._complaint = complaint
        return None if complaint else self._encoder


def release_for_devices(releases: ReleaseReader, live: Catalogue) -> SignedManifest | None:
    """The newest release whose encoder has taken over: the live catalogue has vectors by it, so a device never swaps
    to one that it can't ask with. The newest of all where there is no such release, None before the first."""
    return releases.newest_with(live.encoder) or releases.current()
