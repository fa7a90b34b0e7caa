"""The live catalogue as product-quantised codes with cards, cut by publishing day, for recall on the device.

Blobs are named by their hash, so a device takes the days that are new to it and nothing else; the listing says nothing
of who asks. The book of centroids outlives pool versions and restarts, since with another book every code would be
new, and training rounds of the news model, since each turns the space by very little (`pool_book.py`).
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from threading import Lock, Semaphore, Thread
from weakref import ref as weak_ref

import numpy as np
from numpy.typing import NDArray

from backend.errors import CatalogueBehind
from backend.popularity.prior import SHARPNESS
from backend.recall.catalogue import Catalogue, LiveCatalogue
from backend.recall.pool_book import KeptBook, OneAtATime
from backend.recall.product_codes import encode
from backend.recall.vector_shards import by_day, days_of
from backend.releases.blobs import digest
from backend.storage.object_store import ObjectStore, StorageUnavailable
from device_app.wire.broadcast import (
    CodeShard,
    PoolCodes,
    etag_of_codes,
    pack_book,
    pack_cards,
    pack_codes,
    pack_priors,
)
from device_app.wire.ids import ReleaseId, Sha256
from device_app.wire.releases import BlobRef

LISTINGS_KEPT = 2
TRAINING = "pool-codes"
"""The lock of the process that trains a quantizer."""
SHARED_FOLDER, SHARED_SEC = "codes", 3_600.0
MADE_WITHIN_SEC = 2.0
"""So long a request waits for codes that are being made: about a second for 6,000 news, ten for 100,000."""
WAITING_LIMIT = 2
"""Requests that may wait at a time, since each holds a worker: all others take the listing before, or are told to come
again."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _CodeListing:
    """The codes of one catalogue, which isn't held for them: blobs by hash, and the listing of them but for the
    release's name."""

    catalogue: weak_ref[Catalogue]
    pool_version: int
    encoder: str
    blobs: Mapping[Sha256, bytes]
    subspaces: int
    book: BlobRef
    priors: BlobRef
    shards: tuple[CodeShard, ...]


class PoolCodeStore:
    """Cuts the pool's codes when they are first asked for; the blobs of the last two catalogues stay in memory.

    They are in the storage too, as long as anybody asks for their listing: a device that has a listing of one process
    may ask another one for its parts.

    They are made in a thread of their own, for which few requests wait a little. To all others the listing before is
    served, or CatalogueBehind raised.
    """

    def __init__(self, live: LiveCatalogue, objects: ObjectStore, turn: OneAtATime = nullcontext) -> None:
        """turn: whose block one process at a time is in, where several share the objects; others wait."""
        self._book = KeptBook(objects, turn)
        self._live, self._shared = live, objects.under(SHARED_FOLDER)
        self._listings: tuple[_CodeListing, ...] = ()
        self._cards: dict[bytes, bytes] = {}
        self._starting, self._working = Lock(), Lock()
        self._waiting = Semaphore(WAITING_LIMIT)
        self._making: tuple[weak_ref[Catalogue], Future[None]] | None = None
        self._shared_at: dict[Sha256, float] = {}
        self._renews_at = math.inf

    def listing(self, release: ReleaseId) -> tuple[bytes, str]:
        """A PoolCodes as JSON bytes, and its ETag. Raises CatalogueBehind while the first is being made."""
        cut = self._newest(release)
        listing = PoolCodes(
            release=release,
            version=cut.pool_version,
            encoder=cut.encoder,
            subspaces=cut.subspaces,
            sharpness=SHARPNESS,
            book=cut.book,
            priors=cut.priors,
            shards=cut.shards,
        )
        content = listing.model_dump_json().encode()
        return content, etag_of_codes(content)

    def by_hash(self, sha256: Sha256) -> bytes | None:
        """A blob of the last listings."""
        return next((cut.blobs[sha256] for cut in self._listings if sha256 in cut.blobs), None)

    def of_another(self, sha256: Sha256) -> bytes | None:
        """A blob of a listing that another process has made. Raises StorageUnavailable."""
        try:
            content = self._shared.read(sha256)
        except FileNotFoundError:
            return None
        return content if digest(content) == sha256 else None

    def _newest(self, release: ReleaseId) -> _CodeListing:
        catalogue = self._live.current
        if not self._listings or self._listings[-1].catalogue() is not catalogue:
            making = self._begun(catalogue)
            if self._waiting.acquire(blocking=False):
                try:
                    with suppress(TimeoutError):  # the listing before serves meanwhile
                        making.result(MADE_WITHIN_SEC)
                finally:
                    self._waiting.release()
        if not self._listings or self._listings[-1].encoder != catalogue.encoder:
            raise CatalogueBehind(release)
        self._renew()
        return self._listings[-1]

    def _renew(self) -> None:
        """Before the other processes take it for left over: a pool may stay as it is for longer than they wait."""
        with self._starting:
            if time.monotonic() < self._renews_at:
                return
            self._renews_at = math.inf
        Thread(target=self._share_again, name="pool-codes-again", daemon=True).start()

    def _share_again(self) -> None:
        with self._working:
            self._share(self._listings[-1].blobs)

    def _begun(self, catalogue: Catalogue) -> Future[None]:
        with self._starting:
            if self._making is None or self._making[0]() is not catalogue or self._making[1].done():
                made: Future[None] = Future()
                self._making = (weak_ref(catalogue), made)
                Thread(target=self._make, args=(catalogue, made), name="pool-codes", daemon=True).start()
            return self._making[1]

    def _make(self, catalogue: Catalogue, made: Future[None]) -> None:
        try:
            with self._working:
                self._listings = (*self._listings, self._made(catalogue))[-LISTINGS_KEPT:]
        except Exception as broken:
            _log.exception("the pool's codes could not be made")
            made.set_exception(broken.with_traceback(None))  # its frames would hold the catalogue
        else:
            made.set_result(None)

    def _made(self, catalogue: Catalogue) -> _CodeListing:
        blobs: dict[Sha256, bytes] = {}

        def keep(blob: bytes) -> BlobRef:
            blobs[name := digest(blob)] = blob
            return BlobRef(sha256=name, size_bytes=len(blob))

        book = self._book.of(catalogue)
        codes = encode(catalogue.vectors, book)
        rows = days_of(catalogue)
        names = sorted(rows, key=by_day)
        cards = {name: self._packed(catalogue, rows[name]) for name in names}
        self._cards = dict(cards.values())
        shards = tuple(
            CodeShard(
                name=name, count=len(rows[name]), codes=keep(pack_codes(codes[rows[name]])), cards=keep(cards[name][1])
            )
            for name in names
        )
        order = np.concatenate([np.empty(0, dtype=np.intp), *(rows[name] for name in names)])
        book_ref, priors = keep(pack_book(book)), keep(pack_priors(catalogue.log_popularity[order]))
        self._share(blobs)
        return _CodeListing(
            weak_ref(catalogue),
            catalogue.pool_version,
            catalogue.encoder,
            blobs,
            len(book),
            book_ref,
            priors,
            shards,
        )

    def _share(self, blobs: Mapping[Sha256, bytes]) -> None:
        """For the other processes; what is older than an hour and not listed here goes, as whoever lists it puts it
        again every half hour."""
        now, listed = time.monotonic(), blobs.keys() | {each for listing in self._listings for each in listing.blobs}
        self._shared_at = {sha256: at for sha256, at in self._shared_at.items() if sha256 in listed}
        self._renews_at = now + SHARED_SEC / 2
        try:
            for sha256, blob in blobs.items():
                if self._shared_at.get(sha256, -math.inf) <= now - SHARED_SEC / 2:
                    self._shared.put(sha256, blob)
                    self._shared_at[sha256] = now
            before = time.time() - SHARED_SEC
            for each in list(self._shared.list()):
                if each.key not in listed and each.modified < before:
                    self._shared.delete(each.key)
        except (OSError, StorageUnavailable) as refused:
            _log.warning("the pool's codes could not be shared (%s); this process alone has them", refused)

    def _packed(self, catalogue: Catalogue, rows: NDArray[np.intp]) -> tuple[bytes, bytes]:
        """The cards' digest and the packed cards; what was packed for the last catalogue isn't packed again."""
        cards = [catalogue.cards[row] for row in rows]
        mark = hashlib.sha256(b"\n".join(cards)).digest()
        return mark, self._cards.get(mark) or pack_cards(cards)
