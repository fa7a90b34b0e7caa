"""Secrets that the first start makes: files that appear whole and once, readable by their owner only.

However many processes start at once, all go on with the one that came first.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from backend.storage.durable_files import UNFINISHED, sync_folder


def load_or_create_secret(path: Path, make: Callable[[], bytes]) -> bytes:
    """What the file holds; what `make` gives where there is none, or where it is empty.

    An empty one is what a first start of version 0.1.0 left that was killed before it wrote. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            if kept := path.read_bytes():
                return kept
        except FileNotFoundError:
            _create(path, make())
        else:
            with FileLock(path.with_name(f"{path.name}.lock"), mode=0o600):  # or one start would remove another's
                if path.is_file() and not path.stat().st_size:
                    path.unlink()


def _create(path: Path, content: bytes) -> None:
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
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
