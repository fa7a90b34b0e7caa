"""The book of centroids that the pool's codes are made by: kept in the storage for all processes, trained by one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.recall.catalogue import Catalogue
from backend.recall.product_codes import mean_error, train_book
from backend.storage.object_store import ObjectStore, StorageUnavailable
from device_app.wire.broadcast import CENTROIDS
from device_app.wire.releases import BLOB_LIMIT_BYTES
from device_app.wire.tensors import TensorError, TensorSpec, pack, unpack

SUBSPACES = (32, 16, 8, 4, 2, 1)
"""Bytes a piece of news: the first that divides the vectors' dimensions. 32 make 394 KB of 12,312 news; half of that
costs up to a point of recall (docs/decisions/020)."""
RETRAIN_FACTOR = 2.0
"""A pool so many times larger or smaller than the one that the quantizer was trained on gets a new quantizer."""
ERROR_FACTOR = 1.05
"""A product quantizer whose error on the pool is so many times that on the pool it was trained on is replaced. On the
newspaper's 5,674 news 100 steps of a news model at 5e-5 came to 1.045, 30 to 1.01."""

OneAtATime = Callable[[], AbstractContextManager[object]]

_log = logging.getLogger(__name__)


class KeptBook:
    """Takes the kept book as long as it fits the pool, since with another every code would be new; it takes seconds to
    train."""

    def __init__(self, objects: ObjectStore, turn: OneAtATime) -> None:
        """turn: whose block one process at a time is in, where several share the objects; others wait."""
        self._objects, self._turn = objects, turn

    def of(self, catalogue: Catalogue) -> NDArray[np.float32]:
        """The book for this catalogue, float32 [M, 256, D / M]. Raises StorageUnavailable."""
        book = self._kept(catalogue)
        if book is not None:
            return book
        with self._turn():  # of two first starts, the second takes the first one's
            book = self._kept(catalogue)
            return self._trained(catalogue) if book is None else book

    def _kept(self, catalogue: Catalogue) -> NDArray[np.float32] | None:
        """The kept book, float32 [M, 256, D / M], if it fits."""
        count, dimensions, subspaces, key = _shape(catalogue)
        specs = {
            "centroids": TensorSpec("float32", (subspaces, CENTROIDS, dimensions // subspaces)),
            "trained_on": TensorSpec("int64", (1,)),
            "error": TensorSpec("float32", (1,)),
        }
        try:
            kept = unpack(self._objects.read(key), specs, limit_bytes=BLOB_LIMIT_BYTES)
            # Up to 256 news a book holds them as they are, so it fits these very news only.
            fits = count > CENTROIDS and 1 / RETRAIN_FACTOR <= count / kept["trained_on"][0] <= RETRAIN_FACTOR
            if fits and mean_error(catalogue.vectors, kept["centroids"]) <= ERROR_FACTOR * kept["error"][0]:
                return kept["centroids"]
        except FileNotFoundError:
            pass  # the first time
        except TensorError as damaged:
            _log.warning("the kept book of pool codes can't be used (%s): training a new one", damaged)
        return None

    def _trained(self, catalogue: Catalogue) -> NDArray[np.float32]:
        """A new book, float32 [M, 256, D / M]. Without a place in the storage it lives in memory."""
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
            _log.warning("the book of pool codes could not be kept (%s)", refused)
        return book


def _shape(catalogue: Catalogue) -> tuple[int, int, int, str]:
    """How many news there are, of how many dimensions; how many subspaces these make, and where such a book is kept."""
    count, dimensions = catalogue.vectors.shape if len(catalogue) else (0, SUBSPACES[0])
    subspaces = next(each for each in SUBSPACES if dimensions % each == 0)
    return count, dimensions, subspaces, f"codes-{subspaces}.safetensors"
