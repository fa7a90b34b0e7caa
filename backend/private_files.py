"""The backend's data folder: keys, tokens, uploads and sums, for the user that runs it and for nobody else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

UMASK = 0o077


def keep_new_files_private() -> None:
    """Have this process, and those that it starts, make files for their owner only. Commands call it first."""
    os.umask(UMASK)


def tighten(folder: Path) -> int:
    """Take from a folder, and all in it, what others may do there; returns how many entries had to be changed.

    The folder itself may be a link; those in it are not followed. Raises PermissionError for what belongs to another
    user.
    """
    folder = folder.resolve()
    changed = _tighten(folder)
    for inside, folders, files in os.walk(folder):
        changed += sum(_tighten(Path(inside, name)) for name in (*folders, *files))
    return changed


def _tighten(path: Path) -> int:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or not stat.S_IMODE(mode) & UMASK:
            return 0
        path.chmod(stat.S_IMODE(mode) & ~UMASK)
    except FileNotFoundError:
        return 0  # a worker or SQLite removed it meanwhile
    return 1
