"""Opens the storage that the settings name: the data folder, a mounted folder, or an object store by its URL."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from backend.errors import BackendSettingsRefused
from backend.storage.local_folder import LocalFolder
from backend.storage.object_store import ObjectStore
from backend.storage.remote_folder import RemoteFolder

COPIES_FOLDER = "copies"
"""In the data folder: this machine's copies of objects of a store."""
S3_OPTIONS: dict[str, Any] = {
    # Answers of 500, 502, 503 and 504 and broken connections are tried again, after waits that double.
    "config_kwargs": {"retries": {"mode": "standard", "max_attempts": 5}, "connect_timeout": 3, "read_timeout": 10},
    "use_listings_cache": False,
}
S3 = ("s3", "s3a")
S3_TRIES = 2
"""Of all that, where a connection isn't made or breaks in the middle of an object. s3fs would do it five times: a row
that is locked meanwhile would stay so for minutes."""


def open_storage(url: str | None, data_dir: Path) -> ObjectStore:
    """The store of that URL; the data folder itself for None.

    Credentials and endpoint of S3 are read where all its programs read them: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL,
    ~/.aws. Raises BackendSettingsRefused for a URL that no installed package opens.
    """
    if url is None:
        return LocalFolder(data_dir)
    if (folder := mounted_folder(url)) is not None:
        return LocalFolder(folder)
    files, root = _file_system(url)
    return RemoteFolder(files, root.rstrip("/"), data_dir / COPIES_FOLDER)


def mounted_folder(url: str | None) -> Path | None:
    """The folder that a URL of `file:` names; None for another. Raises BackendSettingsRefused where it isn't whole."""
    if url is None:
        return None
    parts = urlsplit(url)
    if not parts.scheme or (parts.scheme in S3 and not parts.netloc):
        raise BackendSettingsRefused(
            f"Setting storage: {url!r} names no storage; it is 's3://bucket/folder', or 'file:///folder'.",
            field="storage",
        )
    if parts.scheme != "file":
        return None
    # In file://mnt/ownfeed the first name would be a machine's, and /ownfeed the folder.
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/") or parts.path == "/":
        raise BackendSettingsRefused(
            f"Setting storage: {url} names no folder; it begins with three slashes, as in file:///mnt/ownfeed.",
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
