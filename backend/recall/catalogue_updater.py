"""Keeps the live catalogue up to date with the pool and the release, in its own thread."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime

import numpy as np

from backend.news.pool import NewsPool
from backend.popularity.estimate import CountSource
from backend.recall.catalogue import Catalogue, LiveCatalogue, build_catalogue
from backend.recall.encoder_takeover import PoolEmbedding, TitleEmbedder
from backend.recall.indexes.selection import IndexRules
from backend.recall.indexes.store import IndexStore
from backend.recall.indexing import IndexBeingBuilt, Turn
from backend.recall.served_releases import ServedReleases
from backend.releases.errors import NothingPublished

STOP_WITHIN_SEC = 30.0
LONG_BUILD_SEC, REST = 1.0, 0.5
"""Rules for slow builds: a catalogue that took more than LONG_BUILD_SEC of processor time to build is kept for REST
times the build's duration, even if the pool changes. This leaves processor time for readers while a large pool is
filled article by article. An article that just misses one build is in the next, after two and a half build times.
"""

GROWN = 1.25
"""Once a catalogue is this many times as large as when it was last excluded from garbage collection, it is excluded
again: going through 50,000 articles takes the collector 0.2 s, in which no request is answered. What waits for a full
collection at that moment is never freed; a pool grows to 50,000 articles in 30 such steps."""

_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The clock of a real updater."""
    return datetime.now(UTC)


class CatalogueUpdater:
    """Expires articles, embeds new titles, and builds and swaps in a new catalogue.

    A new count also causes a rebuild.

    `prepare` gets each catalogue before it serves, so that no reader waits for what can be computed in advance. `sort`
    assigns sections to new articles before they are shown, and again after a change of encoder; it gets the digest of
    the encoder in use, and opens the encoder only if articles wait. `turn` is the lock of `PoolEmbedding`; `indexing`
    is the lock of the process that builds the index of a changed pool, which all others load from `kept`.
    """

    def __init__(
        self,
        pool: NewsPool,
        releases: ServedReleases,
        live: LiveCatalogue,
        open_encoder: Callable[[], TitleEmbedder],
        kept: IndexStore,
        rules: IndexRules,
        *,
        poll_sec: float,
        expire_every_sec: float,
        clock: Callable[[], datetime] = utc_now,
        prepare: Callable[[Catalogue], None] | None = None,
        counts: CountSource | None = None,
        sort: Callable[[str, Callable[[], TitleEmbedder | None]], int] | None = None,
        turn: Turn = lambda: nullcontext(True),
        indexing: Turn = lambda: nullcontext(True),
    ) -> None:
        self._pool, self._releases, self._live = pool, releases, live
        self._embedding = PoolEmbedding(pool, open_encoder, turn)
        self._kept, self._rules = kept, rules
        self._turn, self._waits = indexing, False
        self._poll_sec, self._expire_every_sec, self._clock = poll_sec, expire_every_sec, clock
        self._prepare, self._counts, self._sort = prepare, counts, sort
        self._expired_at = self._rests_until = -np.inf
        self._more_to_embed = self._more_to_sort = False
        self._frozen_size = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self) -> bool:
        """Do what is due once.

        Return true if more may wait to be embedded or sorted, so that the next step should follow at once.
        """
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
        if not stale and not catalogue.without_vector and not self._waits and not self._more_to_sort:
            return False
        rests = catalogue.encoder == encoder and time.monotonic() < self._rests_until
        if rests and not self._more_to_embed and not self._more_to_sort:
            return False
        stored, self._more_to_embed = self._embedding.step(encoder)
        if self._sort is not None:
            with self._embedding.complaining():
                self._more_to_sort = self._sort(encoder, lambda: self._embedding.encoder(encoder)) > 0
        if (stale or stored or self._waits) and not rests:
            try:
                fresh = self._rebuilt(catalogue, encoder)
                self._live.swap(fresh)
                self._freeze_when_grown(len(fresh))
                self._waits = False
            except IndexBeingBuilt:
                self._waits = True
        return self._more_to_embed or self._more_to_sort

    def rebuild(self) -> None:
        """Rebuild the catalogue from the whole pool while the current one serves.

        Must not be called while `start`'s thread runs. Raises NothingPublished before the first release.
        """
        self._releases.refresh()
        self._live.swap(self._rebuilt(None, self._releases.current.encoder))

    def start(self) -> None:
        """Start the background thread."""
        self._thread = threading.Thread(target=self._run, name="catalogue-keeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the background thread after its work in progress, which takes seconds."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_SEC)
            if self._thread.is_alive():
                _log.error("the catalogue updater did not stop within %g s", STOP_WITHIN_SEC)

    def _run(self) -> None:
        while not self._stopping.is_set():
            more = False
            try:
                more = self.step()
            except Exception:
                # A locked database or a full disk may recover: the current catalogue stays, and the next turn retries.
                _log.exception("the catalogue could not be brought up to date")
            if not more:
                self._stopping.wait(self._poll_sec)

    def _freeze_when_grown(self, size: int) -> None:
        if size > GROWN * self._frozen_size:
            gc.freeze()
            self._frozen_size = size

    def _rebuilt(self, previous: Catalogue | None, encoder: str) -> Catalogue:
        began = time.thread_time()
        fresh = build_catalogue(
            self._pool,
            encoder,
            self._clock(),
            self._kept,
            rules=self._rules.under(*self._releases.current.basis_values.shape),
            previous=previous,
            counts=self._counts,
            turn=self._turn,
        )
        _log.info(
            "catalogue of pool version %d: %d articles, %s, built in %.2f s",
            fresh.pool_version,
            len(fresh),
            fresh.status.kind,
            fresh.build_sec,
        )
        if self._prepare is not None:
            self._prepare(fresh)
        if (taken := time.thread_time() - began) > LONG_BUILD_SEC:
            self._rests_until = time.monotonic() + REST * taken
        return fresh
