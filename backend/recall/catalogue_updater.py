"""Keeps the live catalogue up to date with the pool and the release, in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.errors import OwnfeedError
from backend.popularity.estimate import Counts
from backend.recall.catalogue import Catalogue, LiveCatalogue, ReadPool, build_catalogue
from backend.recall.indexing import IndexRules
from backend.recall.served_releases import ServedReleases
from backend.releases.errors import NothingPublished

TITLES_AT_ONCE = 512
"""Embedded, stored and shown together, so that a large ingest appears bit by bit and a stop waits a few seconds."""
STOP_WITHIN_SEC = 30.0

_log = logging.getLogger(__name__)


class ServingPool(ReadPool, Protocol):
    """The part of `backend.news.pool.NewsPool` that the keeper uses besides reading."""

    def missing_vectors(self, encoder: str) -> list[tuple[int, str, str, str]]:
        """(number, id, title, abstract) of news without a vector."""
        ...

    def store_vectors(
        self, encoder: str, ids: Sequence[str], vectors: NDArray[np.float32], *, titles: Sequence[str] | None = None
    ) -> int:
        """Store vectors [n, D]."""
        ...

    def expire(self, now: datetime) -> int:
        """Remove what has outlived its lifetime."""
        ...


class TitleEmbedder(Protocol):
    """The part of `backend.embedding.embedder.Embedder` that the keeper uses."""

    digest: str

    def encode(self, titles: Sequence[str]) -> NDArray[np.float32]:
        """float32 [n, D]"""
        ...


def utc_now() -> datetime:
    """The clock of a real keeper."""
    return datetime.now(UTC)


class CatalogueUpdater:
    """Expires news, embeds new titles, rebuilds the catalogue aside and swaps it in; a new count rebuilds it too.

    `prepare` sees each catalogue before it serves, so that no reader waits for what can be made ahead. `sort` gives new
    news their sections before they are shown, and others new ones by another encoder; it is told which encoder is in
    use, and opens it only where any news wait.
    """

    def __init__(
        self,
        pool: ServingPool,
        releases: ServedReleases,
        live: LiveCatalogue,
        open_encoder: Callable[[], TitleEmbedder],
        index_dir: Path,
        rules: IndexRules,
        *,
        poll_sec: float,
        expire_every_sec: float,
        clock: Callable[[], datetime] = utc_now,
        prepare: Callable[[Catalogue], None] | None = None,
        counts: Counts | None = None,
        sort: Callable[[str, Callable[[], TitleEmbedder | None]], object] | None = None,
    ) -> None:
        self._pool, self._releases, self._live = pool, releases, live
        self._open_encoder, self._index_dir, self._rules = open_encoder, index_dir, rules
        self._poll_sec, self._expire_every_sec, self._clock = poll_sec, expire_every_sec, clock
        self._prepare, self._counts, self._sort = prepare, counts, sort
        self._encoder: TitleEmbedder | None = None
        self._expired_at = -np.inf
        self._complaint = ""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self) -> bool:
        """Do what is due once; true if there is more to embed and the next step should follow at once."""
        if time.monotonic() - self._expired_at >= self._expire_every_sec:
            self._pool.expire(self._clock())
            self._expired_at = time.monotonic()
        self._releases.refresh()
        try:
            encoder = self._releases.current.encoder
        except NothingPublished:
            return False
        catalogue = self._live.current
        counted = 0 if self._counts is None else self._counts.version()
        stale = (
            catalogue.encoder != encoder
            or catalogue.pool_version != self._pool.version()
            or catalogue.counted != counted
        )
        if not stale and not catalogue.without_vector:
            return False
        stored, more = self._embed_some(encoder)
        if self._sort is not None:
            self._sort(encoder, lambda: self._ready_encoder(encoder))
        if stale or stored:
            self._live.swap(self._rebuilt(catalogue, encoder))
        return more

    def start(self) -> None:
        """Begin to work in the background."""
        self._thread = threading.Thread(target=self._run, name="catalogue-keeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the work under way end (seconds) and stop."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_SEC)
            if self._thread.is_alive():
                _log.error("the catalogue's keeper did not stop within %g s", STOP_WITHIN_SEC)

    def _run(self) -> None:
        while not self._stopping.is_set():
            more = False
            try:
                more = self.step()
            except Exception:
                # A locked database or a full disk may pass: the catalogue that serves stays, and the next turn retries.
                _log.exception("the catalogue could not be brought up to date")
            if not more:
                self._stopping.wait(self._poll_sec)

    def _embed_some(self, digest: str) -> tuple[int, bool]:
        """Embed up to TITLES_AT_ONCE titles without a vector; how many were stored, and whether more are left."""
        missing = self._pool.missing_vectors(digest)
        encoder = self._ready_encoder(digest) if missing else None
        if encoder is None:
            return 0, False
        batch = missing[:TITLES_AT_ONCE]
        titles = [title for _, _, title, _ in batch]
        stored = self._pool.store_vectors(digest, [row[1] for row in batch], encoder.encode(titles), titles=titles)
        return stored, stored > 0 and len(missing) > len(batch)

    def _ready_encoder(self, digest: str) -> TitleEmbedder | None:
        """The encoder of the current release, or None with one line in the log: new news then wait unseen."""
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

    def _rebuilt(self, previous: Catalogue, encoder: str) -> Catalogue:
        fresh = build_catalogue(
            self._pool,
            encoder,
            self._clock(),
            self._index_dir,
            rules=self._rules,
            previous=previous,
            counts=self._counts,
        )
        _log.info(
            "catalogue of pool version %d: %d news, %s, built in %.2f s",
            fresh.pool_version,
            len(fresh),
            fresh.status.kind,
            fresh.build_sec,
        )
        if self._prepare is not None:
            self._prepare(fresh)
        return fresh
