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
    "config_kwargs": {"retries": {"mode": "standard", "max_attempts": 5}, "connect_timeout": 5, "read_timeout": 30},
    "use_listings_cache": False,
}


def open_storage(url: str | None, data_dir: Path) -> ObjectStore:
    """The store of that URL; the data folder itself for None.

    Credentials and endpoint of S3 are read where all its programs read them: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL,
    ~/.aws. Raises BackendSettingsRefused for a URL that no installed package opens.
    """
    if url is None:
        return LocalFolder(data_dir)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalFolder(Path(unquote(parts.path)))
    files, root = _file_system(url)
    return RemoteFolder(files, root.rstrip("/"), data_dir / COPIES_FOLDER)


@lru_cache(maxsize=4)
def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as missing:
        raise _not_installed(url) from missing
    options = S3_OPTIONS if urlsplit(url).scheme in ("s3", "s3a") else {"use_listings_cache": False}
    try:
        files, root = url_to_fs(url, **options)
    except ImportError as missing:
        raise _not_installed(url) from missing
    except ValueError as unknown:
        raise BackendSettingsRefused(f"Setting storage: {unknown}.", field="storage") from unknown
    return files, str(root)


def _not_installed(url: str) -> BackendSettingsRefused:
    scheme = urlsplit(url).scheme
    return BackendSettingsRefused(
        f"Setting storage: {scheme}:// needs packages that aren't installed. Install ownfeed[storage] for S3, or what "
        f"fsspec's documentation names for {scheme}.",
        field="storage",
    )
