"""Switches recall to a new news encoder without a gap.

The pool's vectors by the new encoder are computed first, then the catalogue is built from them, and only then do
devices learn of the release. Until then the previous encoder's catalogue answers for that encoder's releases
(`served_releases`).
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
from backend.news.pool import NewsPool
from backend.news.pool_reading import PoolRow
from backend.recall.catalogue import Catalogue
from backend.recall.indexing import Turn
from backend.releases.store import ReleaseReader
from protocol.releases import SignedManifest

TITLES_AT_ONCE = 512
"""Titles embedded, stored and shown together: a large ingest appears step by step, and a stop waits a few seconds."""

EMBEDDING = "embed-titles"
"""Name of the lock of the process that embeds titles: a server, or a background process that prepares one."""

_log = logging.getLogger(__name__)


class TitleEmbedder(Protocol):
    """The part of `backend.embedding.embedder.Embedder` that computes the pool's vectors."""

    digest: str

    def encode(self, titles: Sequence[str]) -> NDArray[np.float32]:
        """float32 [n, D]"""
        ...

    def encode_news(self, news: Sequence[PoolRow]) -> NDArray[np.float32]:
        """Encode articles by all the fields that the encoder reads; float32 [n, D]."""
        ...


class PoolEmbedding:
    """Computes the pool's vectors with the encoder of the current release.

    turn: the EMBEDDING lock, which yields whether this process holds it. If another process holds it, nothing is done.
    """

    def __init__(self, pool: NewsPool, open_encoder: Callable[[], TitleEmbedder], turn: Turn) -> None:
        self._pool, self._open_encoder, self._turn = pool, open_encoder, turn
        self._encoder: TitleEmbedder | None = None
        self._complaint = self._away = ""
        self._complete: tuple[str, int] | None = None
        """Encoder, and the version of the pool at which no article lacked a vector by it."""

    def step(self, digest: str) -> tuple[int, bool]:
        """Embed up to TITLES_AT_ONCE titles.

        Return how many vectors were stored and whether more titles wait.
        """
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
        """Log one line if the encoder's computers are unavailable; only new articles have to wait."""
        try:
            yield
        except ClusterUnavailable as away:
            if away.detail != self._away:
                _log.error("new articles can't be embedded: %s", away.detail)
            self._away = away.detail

    def _missing(self, digest: str) -> list[PoolRow]:
        is_known = self._complete is not None and self._complete[0] == digest
        since = self._complete[1] if is_known and self._complete else None
        return self._pool.missing_vectors(digest, since, TITLES_AT_ONCE + 1)  # one more tells whether more wait

    def encoder(self, digest: str) -> TitleEmbedder | None:
        """The encoder of this digest, or None with one log line; new articles then stay hidden."""
        complaint = ""
        if self._encoder is None or self._encoder.digest != digest:
            try:
                self._encoder = self._open_encoder()
            except OwnfeedError as missing:
                complaint = missing.detail
        if self._encoder is not None and self._encoder.digest != digest:
            complaint = f"the prepared encoder is {self._encoder.digest[:12]}, the release needs {digest[:12]}"
        if complaint and complaint != self._complaint:
            _log.error("new articles can't be embedded: %s", complaint)
        self._complaint = complaint
        return None if complaint else self._encoder


def release_for_devices(releases: ReleaseReader, live: Catalogue) -> SignedManifest | None:
    """The newest release for whose encoder the live catalogue has vectors, so that a device can always request recall.

    Without such a release, the newest of all; None before the first.
    """
    return releases.newest_with(live.encoder) or releases.current()
