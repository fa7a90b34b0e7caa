"""Immutable blobs named by their SHA-256."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from pathlib import Path

from backend.releases.errors import BlobDamaged, UnknownBlob
from backend.storage.object_store import ObjectStore
from device_app.wire.releases import BlobRef


def digest(content: bytes) -> str:
    """SHA-256 in hex: the name of a blob."""
    return hashlib.sha256(content).hexdigest()


class BlobStore:
    """Blobs in a store of objects. What is read from it has been checked against its name."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._checked: dict[str, tuple[int, int]] = {}

    def add(self, content: bytes) -> BlobRef:
        """Keep a blob. The same bytes again are put again.

        That this machine has a copy doesn't say that they are still in the storage, from which another machine may have
        swept them; and what was put just now is too young to be swept before a release names it.
        """
        sha256 = digest(content)
        self._objects.put(sha256, content)
        return BlobRef(sha256=sha256, size_bytes=len(content))

    def path(self, sha256: str) -> Path:
        """A file with the blob's bytes. Raises UnknownBlob, or BlobDamaged if the bytes no longer fit the name.

        A file is hashed once a process, and again if its size or time changed; a damaged copy is taken anew.
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
        """The blob's bytes, checked every time. Raises UnknownBlob or BlobDamaged."""
        content = self.path(sha256).read_bytes()
        if digest(content) != sha256:
            raise BlobDamaged(sha256)
        return content

    def require(self, sha256: str) -> None:
        """That the storage itself has the blob, whatever copy this machine has. Raises UnknownBlob or BlobDamaged."""
        try:
            content = self._objects.read(sha256)
        except FileNotFoundError:
            raise UnknownBlob from None
        if digest(content) != sha256:
            raise BlobDamaged(sha256)

    def sweep(self, keep: Collection[str], *, older_than_sec: float) -> int:
        """Remove unfinished files and blobs that no release names; returns how many.

        Only what is older than `older_than_sec` goes, so that a release being put together keeps its blobs.
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
