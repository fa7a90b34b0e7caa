"""The process that devices run in: told once, by whoever starts it, to leave the machine to others."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Names of mallopt(3)'s parameters in malloc.h."""
ARENAS = 2
LARGE_BYTES = 1024 * 1024


def one_thread() -> None:
    """Keep numpy to one thread. Call it before anything imports numpy: OpenBLAS reads its setting only then.

    A device multiplies small matrices, for which starting a second thread costs more than it gives, and the idle ones
    spin on the core that draws the page. Starting commands call this, not a module on import, because the backend
    imports parts of this package too and may use every core. A number set in the environment stays.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def freeze_gc() -> None:
    """Have the garbage collector leave alone what is loaded by now. Call it once, before serving.

    Modules, models and schemas stay until the end; walking through them took some 60 ms, every 80 feeds or so.
    """
    gc.collect()
    gc.freeze()


def steady_heap() -> bool:
    """Have the C library give back what is freed. Call it before threads are started; False where it isn't glibc's.

    Left alone, glibc opens up to eight heaps a core, one after another for threads that meet, and after the first large
    array is freed it takes arrays of that size from these heaps as well, between small objects that stay: a server
    whose objects stay at 190 MB grew by 2 MB a minute of heap that nothing used. Two heaps at most, and pages of their
    own for whatever is larger than `LARGE_BYTES`, which go back when it is freed. MALLOC_ARENA_MAX in the environment
    has the last word on heaps.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        return False
    wanted = [(_M_MMAP_THRESHOLD, LARGE_BYTES), (_M_TRIM_THRESHOLD, LARGE_BYTES)]
    if "MALLOC_ARENA_MAX" not in os.environ:
        wanted.append((_M_ARENA_MAX, ARENAS))
    return all(mallopt(parameter, value) == 1 for parameter, value in wanted)
