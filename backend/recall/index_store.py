"""The index on disk: its bytes, and beside them what they are and their SHA-256.

Both files are replaced atomically, the bytes first: after a crash between the two the checksum doesn't fit, and the
index is built anew from the vectors, which the database holds.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from backend.errors import IndexBroken
from backend.recall.faiss_index import FaissIndex
from backend.recall.index import Keys, VectorIndex, Vectors
from backend.recall.index_selection import IndexStatus
from backend.recall.scan_index import ScanIndex
from backend.releases.blobs import write_durably

INDEX_FILE = "news.faiss"
CARD_FILE = "news.json"


class IndexDescription(BaseModel):
    """What lies in the index file."""

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
    """Names exactly these vectors under these keys."""
    running = hashlib.sha256(repr(vectors.shape).encode())
    running.update(np.ascontiguousarray(keys).data)
    running.update(np.ascontiguousarray(vectors).data)
    return running.hexdigest()


class IndexStore:
    """One index in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(
        self,
        index: VectorIndex,
        status: IndexStatus,
        *,
        keys: Keys,
        vectors: Vectors,
        encoder: str,
        pool_version: int,
    ) -> None:
        """Write the index durably. Raises OSError (a full disk, say); what lay there before is then still whole or
        refused by its checksum."""
        self._folder.mkdir(parents=True, exist_ok=True)
        dumped = index.dump()
        card = IndexDescription(
            sha256=hashlib.sha256(dumped).hexdigest(),
            content_sha256=content_digest(keys, vectors),
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
        write_durably(self._folder / INDEX_FILE, dumped)
        write_durably(self._folder / CARD_FILE, card.model_dump_json(indent=2).encode())

    def load(self, *, keys: Keys, vectors: Vectors, encoder: str, threads: int) -> tuple[VectorIndex, IndexStatus]:
        """The kept index of exactly these vectors.

        Raises IndexBroken, saying why: there is none, it is damaged, or it is of another pool or encoder.
        """
        try:
            card = IndexDescription.model_validate_json((self._folder / CARD_FILE).read_bytes())
            dumped = (self._folder / INDEX_FILE).read_bytes()
        except FileNotFoundError:
            raise IndexBroken("No index is kept yet.") from None
        except ValidationError:
            raise IndexBroken(f"{CARD_FILE} is damaged.") from None
        if card.encoder != encoder:
            raise IndexBroken("The kept index is of another encoder.")
        if card.content_sha256 != content_digest(keys, vectors):
            raise IndexBroken(f"The kept index is of another pool (version {card.pool_version}).")
        if hashlib.sha256(dumped).hexdigest() != card.sha256:
            raise IndexBroken(f"{INDEX_FILE} is damaged: its SHA-256 is not the one in {CARD_FILE}.")
        index: VectorIndex
        if card.structure == "scan":
            index = ScanIndex.restore(dumped, keys, vectors, effort=card.effort, threads=threads)
        else:
            index = FaissIndex.restore(dumped, factory=card.factory, threads=threads)
        return index, IndexStatus(card.kind, card.news, card.recall_at_400, card.refused)
