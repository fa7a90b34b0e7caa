"""Objects in any store that fsspec reaches, such as S3, with copies on this machine of those that are read as files."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from backend.storage.durable_files import files_below, write_durably
from backend.storage.object_store import StorageUnavailable, StoredObject

T = TypeVar("T")


class RemoteFolder:
    """An `ObjectStore` below one path of an fsspec file system.

    A put is one request, or a multipart upload that is completed at its end: others see all of an object or none. The
    file system tries again by itself where the store asks for it (`opening`); what then still fails is
    StorageUnavailable.

    Args:
        files: an fsspec file system that keeps no listings.
        root: its path, without a slash at the end.
        copies: a folder of this machine for what `path` has taken.
    """

    def __init__(self, files: Any, root: str, copies: Path) -> None:
        self._files, self._root, self._copies = files, root, copies

    def __str__(self) -> str:
        return self._root

    def under(self, name: str) -> RemoteFolder:
        """As `ObjectStore`."""
        return RemoteFolder(self._files, f"{self._root}/{name}", self._copies / name)

    def put(self, key: str, content: bytes | memoryview) -> None:
        """As `ObjectStore`."""
        self._ask(lambda: self._files.pipe_file(f"{self._root}/{key}", bytes(content)))

    def link(self, key: str, name: str) -> None:
        """As `ObjectStore`: nothing."""

    def read(self, key: str) -> bytes:
        """As `ObjectStore`."""
        found: bytes = self._ask(lambda: self._files.cat_file(f"{self._root}/{key}"))
        return found

    def read_into(self, key: str, buffer: memoryview) -> None:
        """As `ObjectStore`."""
        content, room = self.read(key), buffer.cast("B")
        size = min(len(content), len(room))
        room[:size] = content[:size]

    def path(self, key: str) -> Path:
        """As `ObjectStore`; taken from the store the first time."""
        copy = self._copies / key
        if not copy.is_file():
            content = self.read(key)
            copy.parent.mkdir(parents=True, exist_ok=True)
            write_durably(copy, content)
        return copy

    def forget_copy(self, key: str) -> bool:
        """As `ObjectStore`."""
        try:
            (self._copies / key).unlink()
        except FileNotFoundError:
            return False
        return True

    def forget_copies(self, keep: Collection[str], *, older_than_sec: float) -> None:
        """As `ObjectStore`."""
        limit = time.time() - older_than_sec
        for path in files_below(self._copies):
            with suppress(FileNotFoundError):  # another process of this machine does the same
                known = path.relative_to(self._copies).as_posix() in keep
                if not known and path.stat().st_mtime <= limit:
                    path.unlink()

    def list(self, below: str = "") -> Iterator[StoredObject]:
        """As `ObjectStore`."""
        beginning = f"{self._root}/"
        found = self._ask(lambda: self._files.find(f"{beginning}{below}".rstrip("/"), detail=True))
        for name, about in found.items():
            key = name.removeprefix(beginning)
            if name.startswith(beginning):
                yield StoredObject(key, _modified(about))

    def delete(self, key: str) -> None:
        """As `ObjectStore`, with this machine's copy."""
        self.forget_copy(key)
        with suppress(FileNotFoundError):
            self._ask(lambda: self._files.rm_file(f"{self._root}/{key}"))

    def _ask(self, request: Callable[[], T]) -> T:
        try:
            return request()
        except FileNotFoundError:
            raise
        except Exception as failed:  # each store has errors of its own
            raise StorageUnavailable(type(failed).__name__) from failed


def _modified(about: dict[str, Any]) -> float:
    """When an object of a listing was put; now, where the store doesn't say: nothing is swept for its age then."""
    at = about.get("LastModified", about.get("mtime", about.get("created")))
    return at.timestamp() if isinstance(at, datetime) else float(time.time() if at is None else at)
