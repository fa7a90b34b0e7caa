"""Files that are written whole or not at all, and are on the disk when the write returns."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

UNFINISHED = ".part"
"""Ends the name of a file that is still being written."""


def write_durably(path: Path, content: bytes | memoryview) -> None:
    """Put `content` at `path` whole or not at all: a temporary name, fsync, rename, fsync of the folder.

    Raises OSError (a full disk, say) and then leaves nothing behind.
    """
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
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
