"""Immutable blobs on disk, named by their SHA-256."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Collection
from pathlib import Path

from backend.releases.errors import BlobDamaged, UnknownBlob
from device_app.wire.releases import BlobRef

_UNFINISHED = ".part"


def digest(content: bytes) -> str:
    """SHA-256 in hex: the name of a blob."""
    return hashlib.sha256(content).hexdigest()


def write_durably(path: Path, content: bytes | memoryview) -> None:
    """Put `content` at `path` whole or not at all: a temporary name, fsync, rename, fsync of the folder.

    Raises OSError (a full disk, say) and then leaves nothing behind.
    """
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(6)}{_UNFINISHED}")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class BlobFolder:
    """A folder of blobs. What is read from it has been checked against its name."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._checked: dict[str, tuple[int, int]] = {}

    def add(self, content: bytes) -> BlobRef:
        """Keep a blob; adding the same bytes again costs one check, and mends a damaged file."""
        sha256 = digest(content)
        try:
            self.path(sha256)
        except (UnknownBlob, BlobDamaged):
            write_durably(self._folder / sha256, content)
        return BlobRef(sha256=sha256, size_bytes=len(content))

    def path(self, sha256: str) -> Path:
        """Where the blob lies. Raises UnknownBlob, or BlobDamaged if the bytes no longer fit the name.

        A file is hashed once a process, and again if its size or time changed.
        """
        path = self._folder / sha256
        try:
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

    def sweep(self, keep: Collection[str], *, older_than_sec: float) -> int:
        """Remove unfinished files and blobs that no release names; returns how many.

        Only files older than `older_than_sec` go, so that a release being put together keeps its blobs.
        """
        limit = time.time() - older_than_sec
        swept = 0
        for path in self._folder.iterdir():
            if path.name not in keep and path.stat().st_mtime <= limit:
                path.unlink(missing_ok=True)
                self._checked.pop(path.name, None)
                swept += 1
        return swept
