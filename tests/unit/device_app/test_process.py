"""What a started device changes in its process, each tested in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

IN_A_NEW_PROCESS = """
import sys
import ownfeed
assert "numpy" not in sys.modules, "the command imports numpy before it can be told to keep to one thread"
from device_app.process import one_thread
one_thread()
import os
before = len(os.listdir("/proc/self/task"))
import numpy
numpy.ones((500, 500)) @ numpy.ones((500, 500))
print(len(os.listdir("/proc/self/task")) - before, os.environ["OPENBLAS_NUM_THREADS"])
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in Linux's /proc")
@pytest.mark.parametrize(("chosen", "started"), [(None, "0 1"), ("2", "1 2")])
def test_numpy_starts_no_threads_unless_configured(chosen: str | None, started: str) -> None:
    if chosen and len(os.sched_getaffinity(0)) < int(chosen):
        pytest.skip("this machine has one core")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment |= {"OPENBLAS_NUM_THREADS": chosen} if chosen else {}
    ran = subprocess.run(
        [sys.executable, "-c", IN_A_NEW_PROCESS], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout.strip(), ran.stderr) == (started, "")


HEAP = """
import ctypes, os, threading
from device_app.process import LARGE_BYTES, steady_heap
told = {steady} and steady_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
first = libc.malloc(4 * LARGE_BYTES)
libc.free(first)  # from here on glibc alone takes such sizes from its heaps
here = threading.Barrier(8)
def meet():
    kept = [libc.malloc(60_000) for _ in range(20)]
    large = libc.malloc(2 * LARGE_BYTES)
    here.wait()
threads = [threading.Thread(target=meet) for _ in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
read, write = os.pipe()
stream = libc.fdopen
stream.restype = ctypes.c_void_p
out = stream(write, b"w")
libc.malloc_info.argtypes, libc.fclose.argtypes = [ctypes.c_int, ctypes.c_void_p], [ctypes.c_void_p]
libc.malloc_info(0, out)
libc.fclose(out)
said = os.read(read, 65_536).decode()
print(told, said.count("<heap nr="), said.rpartition('type="mmap" count="')[2].partition('"')[0])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="heaps of glibc")
@pytest.mark.parametrize("steady", [True, False], ids=["steady", "left alone"])
def test_threads_share_two_malloc_heaps_and_large_arrays_are_mapped(steady: bool) -> None:
    """Oracle: malloc_info(3), which counts heaps and mapped blocks."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    script = HEAP.replace("{steady}", str(steady))
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert ran.stderr == ""
    reported, heaps, mapped = ran.stdout.split()
    assert reported == str(steady)
    if steady:
        assert int(heaps) <= 2
        assert int(mapped) >= 8
    else:
        assert int(heaps) > 2, "so that the test shows something"
        assert int(mapped) < 8
