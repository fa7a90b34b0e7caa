"""Files that the program obeys: read only where nobody but their reader, or the machine's administrator, could have
written them.

A file of settings that lies in the working folder decides where a device sends what it sends. In a shared folder
anybody can put one there, and whoever may write the folder can put another in its place.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ADMINISTRATOR = 0
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OTHERS_READ = stat.S_IRGRP | stat.S_IROTH


class FileNotTrusted(ValueError):
    """Somebody else could have written the file, or it can't be read. The message names the file and the reason."""


@dataclass(frozen=True)
class TrustedFile:
    """What was read. read_by_others: its mode lets other users read it."""

    path: Path
    content: bytes
    read_by_others: bool


def read_trusted(path: Path) -> TrustedFile:
    """The file's content. Raises FileNotTrusted.

    Refused: a file, or a link to it, that neither this user nor the administrator owns; a file that others may write;
    a file in a folder, or below one, that others own or may write, so that they can put another file in its place.
    Folders with the sticky bit, such as /tmp, are no such folders: there only its owner replaces a file. What is judged
    is what is read, through one descriptor: a file put in its place meanwhile is not read.
    """
    try:
        for folder in _folders(path):
            _check_owner(folder, folder.stat(), f"{path} is refused: its folder {folder}")
            if folder.stat().st_mode & OTHERS_WRITE and not folder.stat().st_mode & stat.S_ISVTX:
                raise FileNotTrusted(
                    f"{path} is refused: others may write its folder {folder}, and so put another file in its place "
                    f"(chmod go-w {folder})"
                )
        if path.is_symlink():
            _check_owner(path, path.lstat(), f"{path} is refused: the link")
        # Without waiting, so that a pipe in the file's place holds nobody up.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise FileNotTrusted(f"{path} is refused: it is no file")
            _check_owner(path, found, f"{path} is refused: it")
            if found.st_mode & OTHERS_WRITE:
                raise FileNotTrusted(f"{path} is refused: others may write it (chmod go-w {path})")
            return TrustedFile(path, file.read(), bool(found.st_mode & OTHERS_READ))
    except OSError as broken:
        raise FileNotTrusted(f"{path} can't be read: {broken.strerror}") from broken


def _folders(path: Path) -> Iterator[Path]:
    """All folders above the file, and above the link to it if it is one, the nearest first."""
    seen = set()
    for nearest in (path.parent.resolve(), path.resolve().parent):
        for folder in (nearest, *nearest.parents):
            if folder not in seen:
                seen.add(folder)
                yield folder


def _check_owner(path: Path, found: os.stat_result, what: str) -> None:
    if found.st_uid not in (os.geteuid(), ADMINISTRATOR):
        raise FileNotTrusted(
            f"{what} belongs to another user (number {found.st_uid}), not to you (number {os.geteuid()})"
        )
