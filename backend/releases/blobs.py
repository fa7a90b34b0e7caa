"""Immutable blobs named by their SHA-256, and the draft of a release that names them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from backend.releases.errors import BlobDamaged, ReleaseNotPublished, UnknownBlob
from backend.storage.object_store import ObjectStore
from protocol.releases import BlobRef, ModelEntry, RecallProtocol, ReleaseManifest


def digest(content: bytes) -> str:
    """Return the SHA-256 in hex, which is the name of a blob."""
    return hashlib.sha256(content).hexdigest()


class BlobStore:
    """Blobs in an object store. Everything read from it has been checked against its name."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._checked: dict[str, tuple[int, int]] = {}

    def add(self, content: bytes) -> BlobRef:
        """Store a blob, even if this machine already has a copy.

        A local copy does not prove that the storage still has the blob, since another machine may have swept it. A blob
        that was just stored is too young to be swept before a release names it.
        """
        sha256 = digest(content)
        self._objects.put(sha256, content)
        return BlobRef(sha256=sha256, size_bytes=len(content))

    def path(self, sha256: str) -> Path:
        """Return a file with the blob's bytes.

        Raises UnknownBlob, or BlobDamaged if they don't match the name. A process hashes a file once, and again if its
        size or time has changed; a damaged copy is fetched again.
        """
        try:
            return self._checked_path(sha256)
        except BlobDamaged:
            if not self._objects.forget_copy(sha256):
                raise
        return self._checked_path(sha256)

    def _checked_path(self, sha256: str) -> Path:
        try:
            path = self._objects.path(sha256)
            stat = path.stat()
        except FileNotFoundError:
            raise UnknownBlob from None
        mark = (stat.st_size, stat.st_mtime_ns)
        if self._checked.get(sha256) != mark:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != sha256:
                raise BlobDamaged(sha256)
            self._checked[sha256] = mark
        return path

    def read(self, sha256: str) -> bytes:
        """Return the blob's bytes, checked every time. Raises UnknownBlob or BlobDamaged."""
        content = self.path(sha256).read_bytes()
        if digest(content) != sha256:
            raise BlobDamaged(sha256)
        return content

    def require(self, sha256: str) -> None:
        """Check that the storage itself has the blob, regardless of local copies.

        Raises UnknownBlob or BlobDamaged.
        """
        try:
            content = self._objects.read(sha256)
        except FileNotFoundError:
            raise UnknownBlob from None
        if digest(content) != sha256:
            raise BlobDamaged(sha256)

    def sweep(self, keep: Collection[str], *, older_than_sec: float) -> int:
        """Delete unfinished files and blobs that no release names; returns how many.

        Only files older than `older_than_sec` are deleted, so that a release in preparation keeps its blobs.
        """
        limit = time.time() - older_than_sec
        swept = 0
        for each in list(self._objects.list()):
            if each.key not in keep and each.modified <= limit:
                self._objects.delete(each.key)
                self._checked.pop(each.key, None)
                swept += 1
        self._objects.forget_copies(keep, older_than_sec=older_than_sec)
        return swept


@dataclass(frozen=True)
class ReleaseDraft:
    """A release without number, time and signature."""

    encoder: str
    dimensions: int
    opset: int
    recall: RecallProtocol
    models: dict[str, ModelEntry]
    default_ranker: str
    vocabulary: BlobRef | None = None
    categories: BlobRef | None = None
    kinship_floor: float | None = None

    @classmethod
    def like(cls, manifest: ReleaseManifest, models: dict[str, ModelEntry] | None = None) -> ReleaseDraft:
        """Return a draft with the content of a release, with other models if given."""
        return cls(
            encoder=manifest.encoder,
            dimensions=manifest.dimensions,
            opset=manifest.opset,
            recall=manifest.recall,
            models=manifest.models if models is None else models,
            default_ranker=manifest.default_ranker,
            vocabulary=manifest.vocabulary,
            categories=manifest.categories,
            kinship_floor=manifest.kinship_floor,
        )

    def check(self) -> None:
        """Raise ReleaseNotPublished unless the default ranker is one of its rankers."""
        default = self.models.get(self.default_ranker)
        if default is None or default.role != "ranker":
            raise ReleaseNotPublished(
                f"{self.default_ranker!r} is not a ranker of this release.", field="default_ranker"
            )


def blob_refs(release: ReleaseDraft | ReleaseManifest) -> list[BlobRef]:
    """Return every blob that a release names.

    These are graphs, weights, codebooks, vocabulary and categories.
    """
    models, recall = release.models.values(), release.recall
    refs = [ref for entry in models for ref in entry.graphs.values()]
    refs += [entry.weights for entry in models if entry.weights is not None]
    refs += [ref for entry in models if entry.groups is not None for ref in entry.groups.blobs]
    refs += [codebook.prototypes for codebook in recall.codebooks]
    return refs + [ref for ref in (release.vocabulary, release.categories) if ref is not None]
