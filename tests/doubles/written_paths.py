"""Recognises the interpreter's audit events that change a file or folder."""

from __future__ import annotations

import os
from typing import Any

CHANGES = frozenset({"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree"})
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def written_path(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return the path that is opened for writing, renamed, removed, shortened or made.

    None for other events.
    """
    if event == "open":
        path, _, flags = arguments
        if not isinstance(flags, int) or not flags & WRITING:
            return None
    elif event in CHANGES:
        path = arguments[0]
    else:
        return None
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    return text if isinstance(text, str) else None
