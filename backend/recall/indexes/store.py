"""Indexes in the storage: their bytes, and a description with their SHA-256, both named by what they index.

The bytes are written first. After a crash in between there is no such index, and it is rebuilt from the vectors, which
the database holds.
"""

import hashlib
import time
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from backend.errors import IndexBroken
from backend.recall.indexes.faiss import FaissIndex
from backend.recall.indexes.fastscan import ScanIndex
from backend.recall.indexes.index import Keys, VectorIndex, Vectors
from backend.recall.indexes.selection import IndexStatus
from backend.storage.durable_files import UNFINISHED
from backend.storage.object_store import ObjectStore

INDEX_FOLDER = "index"
"""Folder in the storage."""
INDEX_SUFFIX, CARD_SUFFIX = ".faiss", ".json"
KEPT = 3
"""How many of the last indexes are kept: processes load them seconds apart."""
UNFINISHED_SEC = 3_600.0
"""Age at which an unfinished file is removed; longer than writing any index takes."""


class IndexDescription(BaseModel):
    """What the index file contains."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    content_sha256: str
    encoder: str
    pool_version: int
    structure: Literal["flat-or-inverted", "scan"]
    factory: str
    effort: int
    kind: str
    news: int
    recall_at_400: float | None
    refused: tuple[str, ...]


def content_digest(keys: Keys, vectors: Vectors) -> str:
    """A digest that identifies exactly these vectors under these keys."""
    running = hashlib.sha256(repr(vectors.shape).encode())
    running.update(np.ascontiguousarray(keys).data)
    running.update(np.ascontiguousarray(vectors).data)
    return running.hexdigest()


class IndexStore:
    """Stores indexes by the vectors they contain, so that what one process builds, all others load.

    local: a folder of this machine, in which the vectors of a large pool may be mapped; None: they stay in memory.
    """

    def __init__(self, objects: ObjectStore, local: Path | None = None) -> None:
        self._objects, self.local = objects, local

    def keep(
        self,
        index: VectorIndex,
        status: IndexStatus,
        *,
        content: str,
        encoder: str,
        pool_version: int,
    ) -> None:
        """Write the index durably, and remove those of earlier pools.

        content: as in `load`. Raises OSError (such as a full disk) or StorageUnavailable; earlier indexes are then
        intact.
        """
        dumped = index.dump()
        card = IndexDescription(
            sha256=hashlib.sha256(dumped).hexdigest(),
            content_sha256=content,
            encoder=encoder,
            pool_version=pool_version,
            structure="scan" if isinstance(index, ScanIndex) else "flat-or-inverted",
            factory=index.factory,
            effort=index.effort,
            kind=status.kind,
            news=status.news,
            recall_at_400=status.recall_at_400,
            refused=status.refused,
        )
        name = _name(encoder, content)
        self._objects.put(name + INDEX_SUFFIX, dumped)
        self._objects.put(name + CARD_SUFFIX, card.model_dump_json(indent=2).encode())
        self._sweep()

    def _sweep(self) -> None:
        """Remove old indexes and files of killed writers.

        A process that was about to load one builds its own.
        """
        listed = list(self._objects.list())
        for each in listed:
            if each.key.endswith(UNFINISHED) and time.time() - each.modified > UNFINISHED_SEC:
                self._objects.delete(each.key)
        found = [each for each in listed if each.key.endswith((INDEX_SUFFIX, CARD_SUFFIX))]
        for each in sorted(found, key=lambda each: each.modified)[: -2 * KEPT]:
            self._objects.delete(each.key)

    def load(
        self, *, content: str, keys: Keys, vectors: Vectors, encoder: str, threads: int
    ) -> tuple[VectorIndex, IndexStatus]:
        """Load the index of exactly these vectors, whose `content_digest` is `content`.

        Raises IndexBroken with the reason: there is none, or it is damaged. Raises OSError or StorageUnavailable.
        """
        name = _name(encoder, content)
        try:
            card = IndexDescription.model_validate_json(self._objects.read(name + CARD_SUFFIX))
            dumped = self._objects.read(name + INDEX_SUFFIX)
        except FileNotFoundError:
            raise IndexBroken("No index of this pool is stored.") from None
        except ValidationError:
            raise IndexBroken(f"{name}{CARD_SUFFIX} is damaged.") from None
        if hashlib.sha256(dumped).hexdigest() != card.sha256:
            raise IndexBroken(f"{name}{INDEX_SUFFIX} is damaged: its SHA-256 differs from the stored one.")
        index: VectorIndex
        if card.structure == "scan":
            index = ScanIndex.restore(dumped, keys, vectors, effort=card.effort, threads=threads)
        else:
            index = FaissIndex.restore(dumped, factory=card.factory, threads=threads)
        return index, IndexStatus(card.kind, card.news, card.recall_at_400, card.refused)


def _name(encoder: str, content_sha256: str) -> str:
    return f"{encoder}-{content_sha256[:32]}"
