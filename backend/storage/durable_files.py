"""Files and folders that appear whole or not at all, and are on the disk when the write returns."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

UNFINISHED = ".part"
"""Ends the name of a file that is still being written."""


def write_durably(path: Path, content: bytes | memoryview) -> None:
    """Put `content` at `path` whole or not at all: a temporary name, fsync, rename, fsync of the folder.

    Its owner alone may read it: updates of single readers are among what is written. Raises OSError (a full disk, say)
    and then leaves nothing unfinished behind; where only the folder didn't come to the disk, the file is there.
    """
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(6)}{UNFINISHED}")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def make_private(folder: Path) -> None:
    """Make a folder, and those that it lies in, for their owner alone, where they are missing: `Path.mkdir` gives its
    mode to the last one only. Raises OSError."""
    for each in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        each.mkdir(mode=0o700, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring a folder's own entries to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_folder(made: Path, target: Path) -> None:
    """Rename a folder that was written under another name, beside its place: its files are on the disk before the name
    is. Raises OSError, also where something is there already."""
    for path in files_below(made):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    for parent, _, _ in os.walk(made):
        sync_folder(Path(parent))
    made.replace(target)
    sync_folder(target.parent)


def files_below(folder: Path) -> Iterator[Path]:
    """The files of a folder and of those in it; folders that other processes remove meanwhile are left out.

    Raises OSError where one may not be listed. `Path.rglob` would raise for those that are gone, too.
    """

    def tell(why: OSError) -> None:
        if not isinstance(why, FileNotFoundError):
            raise why

    for parent, _, names in os.walk(folder, onerror=tell):
        for name in names:
            yield Path(parent, name)
