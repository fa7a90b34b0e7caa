"""Free pages of the heap. Oracle: what Linux says the process holds."""

from __future__ import annotations

import ctypes
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from backend.allocator import _glibc, give_free_pages_back, share_arenas

BLOCK_BYTES, BLOCKS = 4_000, 16_384
STATUS = Path("/proc/self/status")


def held_bytes() -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", STATUS.read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) * 1_024


ON_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's heap")
THREADS = 6
SCRIPT = """
import ctypes, threading
from backend.allocator import share_arenas
{call}
library, met = ctypes.CDLL(None), threading.Barrier({threads})
library.malloc.restype = library.fopen.restype = ctypes.c_void_p
def take():
    met.wait()
    library.malloc(1_000)
    met.wait()
threads = [threading.Thread(target=take) for _ in range({threads})]
for one in threads: one.start()
for one in threads: one.join()
file = ctypes.c_void_p(library.fopen({told!r}.encode(), b"w"))
library.malloc_info(0, file)
library.fclose(file)
"""


@ON_GLIBC
def test_what_was_freed_below_something_that_stays_goes_back_to_the_system() -> None:
    """Red without the call: all of it stays until what lies above it goes."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    blocks = [library.malloc(BLOCK_BYTES) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK_BYTES)
    *freed, last = blocks
    for block in freed:
        library.free(block)
    full = held_bytes()
    give_free_pages_back()
    left = held_bytes()
    library.free(last)
    assert full - left > BLOCK_BYTES * BLOCKS * 0.9


def test_a_c_library_without_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Musl:
        def __init__(self, name: str | None) -> None:
            pass

    monkeypatch.setattr(ctypes, "CDLL", Musl)
    _glibc.cache_clear()
    try:
        give_free_pages_back()
        share_arenas()
        assert _glibc("malloc_trim", ctypes.c_size_t) is None
    finally:
        _glibc.cache_clear()


@ON_GLIBC
@pytest.mark.parametrize(("shared", "most"), [(True, 2), (False, THREADS + 1)])
def test_threads_share_arenas(tmp_path: Path, shared: bool, most: int) -> None:
    """In a process of its own. Without the call each thread has its own arena."""
    told = tmp_path / "heaps.xml"
    script = SCRIPT.format(call="share_arenas()" if shared else "", threads=THREADS, told=str(told))
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    heaps = told.read_text().count("<heap nr=")
    assert heaps <= most
    assert shared or heaps > 2
