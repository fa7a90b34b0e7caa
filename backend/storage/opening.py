"""Opens the storage that the settings name: the data folder, a mounted folder, or an object store by its URL.

An object store is any that fsspec supports, such as S3; objects that are read as files are copied to this machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from backend.errors import BackendSettingsRefused
from backend.storage.durable_files import files_below, write_durably
from backend.storage.object_store import LocalFolder, ObjectStore, StorageUnavailable, StoredObject

T = TypeVar("T")


class RemoteFolder:
    """An `ObjectStore` below one path of an fsspec file system.

    A put is one request, or a multipart upload that is completed at its end: others see all of an object or none. The
    file system itself retries if the store requests it; an error that remains is StorageUnavailable.

    Args:
        files: an fsspec file system that caches no listings.
        root: its path, without a slash at the end.
        copies: a folder of this machine for what `path` has downloaded.
    """

    def __init__(self, files: Any, root: str, copies: Path) -> None:
        self._files, self._root, self._copies = files, root, copies

    def __str__(self) -> str:
        return self._root

    def under(self, name: str) -> RemoteFolder:
        return RemoteFolder(self._files, f"{self._root}/{name}", self._copies / name)

    def put(self, key: str, content: bytes | memoryview) -> None:
        self._ask(lambda: self._files.pipe_file(f"{self._root}/{key}", bytes(content)))

    def read(self, key: str) -> bytes:
        found: bytes = self._ask(lambda: self._files.cat_file(f"{self._root}/{key}"))
        return found

    def read_into(self, key: str, buffer: memoryview) -> None:
        content, room = self.read(key), buffer.cast("B")
        size = min(len(content), len(room))
        room[:size] = content[:size]

    def path(self, key: str) -> Path:
        """See `ObjectStore`; downloaded from the store the first time."""
        copy = self._copies / key
        if not copy.is_file():
            content = self.read(key)
            copy.parent.mkdir(parents=True, exist_ok=True)
            write_durably(copy, content)
        return copy

    def forget_copy(self, key: str) -> bool:
        try:
            (self._copies / key).unlink()
        except FileNotFoundError:
            return False
        return True

    def forget_copies(self, keep: Collection[str], *, older_than_sec: float) -> None:
        limit = time.time() - older_than_sec
        for path in files_below(self._copies):
            with suppress(FileNotFoundError):  # another process of this machine does the same
                known = path.relative_to(self._copies).as_posix() in keep
                if not known and path.stat().st_mtime <= limit:
                    path.unlink()

    def list(self, below: str = "") -> Iterator[StoredObject]:
        beginning = f"{self._root}/"
        found = self._ask(lambda: self._files.find(f"{beginning}{below}".rstrip("/"), detail=True))
        for name, about in found.items():
            key = name.removeprefix(beginning)
            if name.startswith(beginning):
                yield StoredObject(key, _modified(about))

    def delete(self, key: str) -> None:
        """See `ObjectStore`, and removes this machine's copy."""
        self.forget_copy(key)
        with suppress(FileNotFoundError):
            self._ask(lambda: self._files.rm_file(f"{self._root}/{key}"))

    def _ask(self, request: Callable[[], T]) -> T:
        try:
            return request()
        except FileNotFoundError:
            raise
        except Exception as failed:  # each store has its own errors
            raise StorageUnavailable(type(failed).__name__) from failed


def _modified(about: dict[str, Any]) -> float:
    """When an object of a listing was stored.

    Now if the store doesn't say, so that nothing is removed for its age.
    """
    at = about.get("LastModified", about.get("mtime", about.get("created")))
    return at.timestamp() if isinstance(at, datetime) else float(time.time() if at is None else at)


COPIES_FOLDER = "copies"
"""Folder in the data folder for this machine's copies of objects of a store."""
S3_OPTIONS: dict[str, Any] = {
    # Responses 500, 502, 503 and 504 and broken connections are retried, with waits that double.
    "config_kwargs": {"retries": {"mode": "standard", "max_attempts": 5}, "connect_timeout": 3, "read_timeout": 10},
    "use_listings_cache": False,
}
S3 = ("s3", "s3a")
S3_TRIES = 2
"""Repetitions of all that, if a connection can't be made or breaks within an object. s3fs would make five: a row that
is locked meanwhile would stay locked for minutes."""


def open_storage(url: str | None, data_dir: Path) -> ObjectStore:
    """The store of that URL; the data folder itself for None.

    S3's credentials and endpoint are read from the usual places: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ~/.aws. Raises
    BackendSettingsRefused for a URL that no installed package opens.
    """
    if url is None:
        return LocalFolder(data_dir)
    if (folder := mounted_folder(url)) is not None:
        return LocalFolder(folder)
    files, root = _file_system(url)
    return RemoteFolder(files, root.rstrip("/"), data_dir / COPIES_FOLDER)


def mounted_folder(url: str | None) -> Path | None:
    """The folder that a `file:` URL names.

    None for another URL. Raises BackendSettingsRefused if it is incomplete.
    """
    if url is None:
        return None
    parts = urlsplit(url)
    if not parts.scheme or (parts.scheme in S3 and not parts.netloc):
        raise BackendSettingsRefused(
            f"Setting storage: {url!r} is not a storage address; use 's3://bucket/folder' or 'file:///folder'.",
            field="storage",
        )
    if parts.scheme != "file":
        return None
    # In file://mnt/ownfeed the first name would be a host, and /ownfeed the folder.
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/") or parts.path == "/":
        raise BackendSettingsRefused(
            f"Setting storage: {url} names no folder; write it with three slashes, as in file:///mnt/ownfeed.",
            field="storage",
        )
    return Path(unquote(parts.path))


@lru_cache(maxsize=4)
def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as missing:
        raise _not_installed(url) from missing
    options = S3_OPTIONS if urlsplit(url).scheme in S3 else {"use_listings_cache": False}
    try:
        files, root = url_to_fs(url, **options)
    except ImportError as missing:
        raise _not_installed(url) from missing
    except ValueError as unknown:
        raise BackendSettingsRefused(f"Setting storage: {unknown}.", field="storage") from unknown
    if options is S3_OPTIONS:
        files.retries = S3_TRIES
    return files, str(root)


def _not_installed(url: str) -> BackendSettingsRefused:
    scheme = urlsplit(url).scheme
    return BackendSettingsRefused(
        f"Setting storage: {scheme}:// needs packages that aren't installed. Install ownfeed[storage] for S3, or what "
        f"fsspec's documentation names for {scheme}.",
        field="storage",
    )
