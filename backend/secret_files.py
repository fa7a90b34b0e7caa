"""Secrets that the first start makes: files that appear whole and once, readable by their owner only.

However many processes start at once, all go on with the one that came first.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from backend.errors import BackendSettingsRefused
from backend.storage.durable_files import UNFINISHED, sync_folder


def load_or_create_secret(path: Path, make: Callable[[], bytes]) -> bytes:
    """What the file holds, also where it is empty; what `make` gives where there is none.

    Raises OSError, or BackendSettingsRefused for a symbolic link that leads nowhere.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            if path.is_symlink():
                raise BackendSettingsRefused(
                    f"{path} is a link to {path.readlink()}, where there is no file. Put the file there, or remove the "
                    "link: the next start then makes another secret.",
                    field=path.name,
                ) from None
            create_secret(path, make())


def create_secret(path: Path, content: bytes) -> None:
    """Put a file there, on the disk when this returns, unless another process was first."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links, such as FAT: those who start take turns
            with FileLock(path.with_name(f"{path.name}.lock"), mode=0o600):
                if not path.exists():
                    draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
