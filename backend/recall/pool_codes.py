"""The live catalogue as product-quantised codes with cards, split by publishing day, for recall on the device.

Product quantisation (Jegou, Douze and Schmid 2011, by FAISS) stores an article in M bytes: each of M subspaces of D / M
coordinates has 256 centroids, and a code names one centroid in each. The quantiser's centroids are trained by one
process and kept in the storage for all. They outlive pool versions and restarts, since other centroids would change
every code, and training rounds of the news model, since each round moves the vectors only slightly.

Blobs are named by their hash, so a device downloads only the days that are new to it; the listing is the same for every
device.
"""

import hashlib
import logging
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from threading import Lock, Semaphore, Thread
from typing import Any
from weakref import ref as weak_ref

import faiss
import numpy as np
from numpy.typing import NDArray

from backend.errors import CatalogueBehind
from backend.popularity.estimate import SHARPNESS
from backend.recall.catalogue import Catalogue, LiveCatalogue
from backend.recall.indexes.index import VectorRows
from backend.recall.vector_shards import by_day, days_of
from backend.releases.blobs import digest
from backend.storage.object_store import ObjectStore, StorageUnavailable
from protocol.broadcast import (
    CENTROIDS,
    CodeShard,
    PoolCodes,
    etag_of_codes,
    pack_book,
    pack_cards,
    pack_codes,
    pack_priors,
)
from protocol.ids import ReleaseId, Sha256
from protocol.releases import BLOB_LIMIT_BYTES, BlobRef
from protocol.tensors import TensorError, TensorSpec, pack, unpack

CODE_BITS = 8
TRAINING_VECTORS = 20_480
"""Number of training vectors, 80 per centroid: more changes the codes' error in the third digit and costs seconds."""
NEWS_AT_ONCE = 16_384
SEED = 1_234


def train_book(vectors: VectorRows, subspaces: int, *, threads: int = 1) -> NDArray[np.float32]:
    """Train centroids [M, 256, D / M] by k-means on the pool [n, D].

    The same pool gives the same centroids.

    In a pool of 256 articles or fewer every article is a centroid, so every code is exact. Raises ValueError if M does
    not divide D.
    """
    count, dimensions = vectors.shape
    if dimensions % subspaces:
        raise ValueError(f"{subspaces} subspaces do not divide {dimensions} dimensions")
    width = dimensions // subspaces
    if count <= CENTROIDS:
        book = np.zeros((subspaces, CENTROIDS, width), dtype=np.float32)
        book[:, :count] = vectors[:].reshape(count, subspaces, width).transpose(1, 0, 2)
        return book
    faiss.omp_set_num_threads(threads)
    quantiser = _quantiser(dimensions, subspaces)
    quantiser.cp.seed = SEED
    quantiser.cp.min_points_per_centroid = 1  # small pools are intended; FAISS would warn of them on standard error
    quantiser.train(np.ascontiguousarray(vectors[:: -(-count // TRAINING_VECTORS)]))
    centroids: NDArray[np.float32] = faiss.vector_to_array(quantiser.centroids)
    return centroids.reshape(subspaces, CENTROIDS, width).copy()


def encode(vectors: VectorRows, book: NDArray[np.float32], *, threads: int = 1) -> NDArray[np.uint8]:
    """Codes uint8 [n, M]: the nearest centroid of each subspace."""
    subspaces, _, width = book.shape
    if not len(vectors):
        return np.empty((0, subspaces), dtype=np.uint8)
    faiss.omp_set_num_threads(threads)
    quantiser = _quantiser(subspaces * width, subspaces)
    faiss.copy_array_to_vector(np.ascontiguousarray(book, dtype=np.float32).ravel(), quantiser.centroids)
    blocks = (vectors[start : start + NEWS_AT_ONCE] for start in range(0, len(vectors), NEWS_AT_ONCE))
    return np.concatenate([quantiser.compute_codes(np.ascontiguousarray(block)) for block in blocks])


def mean_error(vectors: VectorRows, book: NDArray[np.float32]) -> float:
    """Mean squared distance between vectors [n, D] and what their codes decode to; 0 without vectors."""
    total = 0.0
    for start in range(0, len(vectors), NEWS_AT_ONCE):
        block = vectors[start : start + NEWS_AT_ONCE]
        total += float(np.square(block - decode(encode(block, book), book)).sum(dtype=np.float64))
    return total / max(1, len(vectors))


def decode(codes: NDArray[np.uint8], book: NDArray[np.float32]) -> NDArray[np.float32]:
    """Decode codes [n, M] into vectors, float32 [n, D]."""
    rows = book[np.arange(len(book))[None, :], codes]  # [n, M, D / M]
    return rows.reshape(len(codes), -1)


def _quantiser(dimensions: int, subspaces: int) -> faiss.ProductQuantizer:
    return faiss.ProductQuantizer(dimensions, subspaces, CODE_BITS)


SUBSPACES = (32, 16, 8, 4, 2, 1)
"""Possible bytes per article: the first that divides the vectors' dimensions is used. 32 make 394 KB of 12,312
articles; half of that costs at most half a point of recall on MIND (docs/results/recall.md)."""
RETRAIN_FACTOR = 2.0
"""A pool this many times larger or smaller than the one the quantiser was trained on gets a new quantiser."""
ERROR_FACTOR = 1.05
"""A quantiser is replaced if its error on the pool is this many times that on the pool it was trained on. On the demo
newspaper's 5,674 articles, 100 steps of a news model at 5e-5 reached 1.045, and 30 steps 1.01."""

OneAtATime = Callable[[], AbstractContextManager[object]]

_log = logging.getLogger(__name__)


class StoredCodebook:
    """Reuses the stored centroids as long as they fit the pool, since new ones change every code and take seconds to
    train."""

    def __init__(self, objects: ObjectStore, turn: OneAtATime) -> None:
        """turn: a lock that one process holds at a time if several share the objects; others wait."""
        self._objects, self._turn = objects, turn

    def of(self, catalogue: Catalogue) -> NDArray[np.float32]:
        """The centroids for this catalogue, float32 [M, 256, D / M]. Raises StorageUnavailable."""
        book = self._kept(catalogue)
        if book is not None:
            return book
        with self._turn():  # of two simultaneous first starts, the second uses the first one's
            book = self._kept(catalogue)
            return self._trained(catalogue) if book is None else book

    def _kept(self, catalogue: Catalogue) -> NDArray[np.float32] | None:
        """The stored centroids, float32 [M, 256, D / M], if they fit."""
        count, dimensions, subspaces, key = _shape(catalogue)
        specs = {
            "centroids": TensorSpec("float32", (subspaces, CENTROIDS, dimensions // subspaces)),
            "trained_on": TensorSpec("int64", (1,)),
            "error": TensorSpec("float32", (1,)),
        }
        try:
            kept = unpack(self._objects.read(key), specs, limit_bytes=BLOB_LIMIT_BYTES)
            # With up to 256 articles the centroids are the articles themselves, so they fit only these articles.
            fits = count > CENTROIDS and 1 / RETRAIN_FACTOR <= count / kept["trained_on"][0] <= RETRAIN_FACTOR
            if fits and mean_error(catalogue.vectors, kept["centroids"]) <= ERROR_FACTOR * kept["error"][0]:
                return kept["centroids"]
        except FileNotFoundError:
            pass  # the first time
        except TensorError as damaged:
            _log.warning("the stored quantiser of pool codes can't be used (%s): training a new one", damaged)
        return None

    def _trained(self, catalogue: Catalogue) -> NDArray[np.float32]:
        """New centroids, float32 [M, 256, D / M].

        If the storage has no room, they stay in memory only.
        """
        count, dimensions, subspaces, key = _shape(catalogue)
        vectors = catalogue.vectors if count else np.empty((0, dimensions), dtype=np.float32)
        book = train_book(vectors, subspaces)
        about: dict[str, NDArray[Any]] = {
            "trained_on": np.array([max(count, 1)], dtype=np.int64),
            "error": np.array([mean_error(vectors, book)], dtype=np.float32),
        }
        try:
            self._objects.put(key, pack({"centroids": book, **about}))
        except (OSError, StorageUnavailable) as refused:
            _log.warning("the quantiser of pool codes could not be stored (%s)", refused)
        return book


def _shape(catalogue: Catalogue) -> tuple[int, int, int, str]:
    """Number of articles, their dimensions, the number of subspaces, and the storage key of such centroids."""
    count, dimensions = catalogue.vectors.shape if len(catalogue) else (0, SUBSPACES[0])
    subspaces = next(each for each in SUBSPACES if dimensions % each == 0)
    return count, dimensions, subspaces, f"codes-{subspaces}.safetensors"


LISTINGS_KEPT = 2
TRAINING = "pool-codes"
"""Name of the lock of the process that trains a quantiser."""
SHARED_FOLDER, SHARED_SEC = "codes", 3_600.0
MADE_WITHIN_SEC = 2.0
"""Seconds that a request waits for codes that are being made: 6,000 articles take about one second, 100,000 ten."""
WAITING_LIMIT = 2
"""Limit of requests that wait at a time, since each occupies a worker; all others get the previous listing, or are
asked to retry."""


@dataclass(frozen=True)
class _CodeListing:
    """The codes of one catalogue, without a reference to it: blobs by hash, and the listing except the release's
    name."""

    catalogue: weak_ref[Catalogue]
    pool_version: int
    encoder: str
    blobs: Mapping[Sha256, bytes]
    subspaces: int
    book: BlobRef
    priors: BlobRef
    shards: tuple[CodeShard, ...]


class PoolCodeStore:
    """Makes the pool's codes when they are first requested.

    The blobs of the last two catalogues stay in memory.

    They are also in the storage, as long as devices request their listing: a device that has one process's listing may
    request its blobs from another process.

    They are made in a separate thread, for which few requests wait briefly. All others get the previous listing, or
    CatalogueBehind is raised.
    """

    def __init__(self, live: LiveCatalogue, objects: ObjectStore, turn: OneAtATime = nullcontext) -> None:
        """turn: a lock that one process holds at a time if several share the objects; others wait."""
        self._book = StoredCodebook(objects, turn)
        self._live, self._shared = live, objects.under(SHARED_FOLDER)
        self._listings: tuple[_CodeListing, ...] = ()
        self._cards: dict[bytes, bytes] = {}
        self._starting, self._working = Lock(), Lock()
        self._waiting = Semaphore(WAITING_LIMIT)
        self._making: tuple[weak_ref[Catalogue], Future[None]] | None = None
        self._shared_at: dict[Sha256, float] = {}
        self._renews_at = math.inf

    def listing(self, release: ReleaseId) -> tuple[bytes, str]:
        """A PoolCodes as JSON bytes, and its ETag.

        Raises CatalogueBehind while the first one is being made.
        """
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
        """A blob of the last listings, or None."""
        return next((cut.blobs[sha256] for cut in self._listings if sha256 in cut.blobs), None)

    def of_another(self, sha256: Sha256) -> bytes | None:
        """A blob of a listing that another process has made, or None. Raises StorageUnavailable."""
        try:
            content = self._shared.read(sha256)
        except FileNotFoundError:
            return None
        return content if digest(content) == sha256 else None

    def _newest(self, release: ReleaseId) -> _CodeListing:
        catalogue = self._live.current
        if not self._listings or self._listings[-1].catalogue() is not catalogue:
            making = self._started(catalogue)
            if self._waiting.acquire(blocking=False):
                try:
                    with suppress(TimeoutError):  # the previous listing serves meanwhile
                        making.result(MADE_WITHIN_SEC)
                finally:
                    self._waiting.release()
        if not self._listings or self._listings[-1].encoder != catalogue.encoder:
            raise CatalogueBehind(release)
        self._renew()
        return self._listings[-1]

    def _renew(self) -> None:
        """Store the blobs again before other processes delete them as old: a pool may stay unchanged for longer than
        that."""
        with self._starting:
            if time.monotonic() < self._renews_at:
                return
            self._renews_at = math.inf
        Thread(target=self._share_again, name="pool-codes-again", daemon=True).start()

    def _share_again(self) -> None:
        with self._working:
            self._share(self._listings[-1].blobs)

    def _started(self, catalogue: Catalogue) -> Future[None]:
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
            made.set_exception(broken.with_traceback(None))  # its frames would keep the catalogue in memory
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
        """Store the blobs for the other processes, and delete unlisted ones older than an hour.

        A process stores the blobs of its listing again every half hour.
        """
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
        """The digest of the cards and the packed cards.

        What was packed for the last catalogue is reused.
        """
        cards = [catalogue.cards[row] for row in rows]
        mark = hashlib.sha256(b"\n".join(cards)).digest()
        return mark, self._cards.get(mark) or pack_cards(cards)
