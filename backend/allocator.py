"""The C library's heap: how many arenas threads share, and free pages given back to the system.

glibc's alone; elsewhere (musl, macOS, Windows) nothing happens.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

ARENAS = 2
"""Python's threads take turns, so more would hold free room and hardly save a wait."""
_M_ARENA_MAX = -8
"""Of malloc.h."""


def share_arenas() -> None:
    """Let all threads take memory from a few arenas; those that there are stay. By itself glibc makes one for every
    thread, up to eight a processor, and each keeps what it had at its fullest."""
    mallopt = _glibc("mallopt", ctypes.c_int, ctypes.c_int)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, ARENAS)


def give_free_pages_back() -> None:
    """Let the system have every page of the heap on which nothing lies.

    glibc keeps what was freed in the arena of the thread that asked for it, and by itself gives back only its end. A
    look over all arenas takes milliseconds: for ends of work that took much, not for single requests.
    """
    trim = _glibc("malloc_trim", ctypes.c_size_t)
    if trim is not None:
        trim(0)


@cache
def _glibc(name: str, *arguments: type) -> Callable[..., int] | None:
    try:
        found = getattr(ctypes.CDLL(None), name)
    except (OSError, TypeError, AttributeError):
        return None
    found.argtypes, found.restype = arguments, ctypes.c_int
    return found  # type: ignore[no-any-return]
