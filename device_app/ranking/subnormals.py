"""Subnormal numbers taken as zero while a release's graph runs, so that a run takes as long whatever was clicked.

A float32 below 1.2e-38 costs an x86 processor a microcode assist in each product that it enters: a graph of products of
2,000 x 2,000 took 0.36 s where no click lay near a chosen place, and 53 s where one did and scaled them down. The
processor has two bits (FTZ and DAZ in MXCSR, one register for each thread) that make such numbers 0.

ONNX Runtime's own `session.set_denormal_as_zero` sets them in the threads of its pools, and in the first thread that
makes a session in a process, there for good; in the thread that runs a graph it doesn't.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

FLUSH_AND_TAKE_AS_ZERO = 1 << 15 | 1 << 6
"""FTZ and DAZ."""
MXCSR = 7
"""The place of MXCSR among the 32-bit words of glibc's and musl's fenv_t: it follows the 28 bytes of the x87."""
WORDS = 16
"""More than any fenv_t has."""


@contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """In the calling thread until the block ends, which puts its floating-point environment back. Linux on x86-64 only;
    elsewhere nothing is changed."""
    library = _environment()
    if library is None:
        yield
        return
    before, within = (ctypes.c_uint32 * WORDS)(), (ctypes.c_uint32 * WORDS)()
    library.fegetenv(before)
    library.fegetenv(within)
    within[MXCSR] |= FLUSH_AND_TAKE_AS_ZERO
    library.fesetenv(within)
    try:
        yield
    finally:
        library.fesetenv(before)


@lru_cache(maxsize=1)
def _environment() -> Any:
    """The C library with fegetenv and fesetenv, as the process has it already; None where its fenv_t isn't known."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "fegetenv") and hasattr(library, "fesetenv") else None
