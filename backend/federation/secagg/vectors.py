"""Vectors in memory of their own."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from device_app.wire.ring import RingVector


def zero_vector(length: int, dtype: np.dtype[Any]) -> RingVector:
    """A vector of noughts in pages that go back to the system with it.

    From the heap each of a server's threads would keep room for the largest vector it ever held.
    """
    # Private: shared ones, the default, take twice as long to be touched for the first time.
    pages = mmap.mmap(-1, max(1, length * dtype.itemsize), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, dtype=dtype, count=length)
