"""A large pool's vectors in a file that the operating system reads in pages, and gives back where memory is short.

A million news are a gigabyte of vectors, of which a request needs a few hundred rows, a rebuild all of them once. The
file has no name from the moment it is mapped, so that it goes with the catalogue that holds it, whichever way the
process ends.
"""

from __future__ import annotations

import logging
import mmap
import tempfile
from pathlib import Path

import numpy as np

from backend.recall.index import Vectors

MAPPED_FROM_BYTES = 256 * 1024**2
"""A quarter of a million news of 256 numbers; smaller pools stay in memory as they are."""
ROWS_AT_ONCE = 16_384

_log = logging.getLogger(__name__)


def mapped(vectors: Vectors, folder: Path) -> Vectors:
    """The same rows [n, D], read-only, from a file in `folder` where there are many; else the array that was given.

    A full disk is logged, and the array in memory serves.
    """
    if vectors.nbytes < MAPPED_FROM_BYTES:
        return vectors
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            for start in range(0, len(vectors), ROWS_AT_ONCE):
                file.write(np.ascontiguousarray(vectors[start : start + ROWS_AT_ONCE]).data)
            file.flush()
            pages = mmap.mmap(file.fileno(), vectors.nbytes, access=mmap.ACCESS_READ)
    except OSError as refused:
        _log.warning("the vectors could not be kept on disk (%s); they stay in memory", refused.strerror or refused)
        return vectors
    found: Vectors = np.frombuffer(pages, dtype=np.float32).reshape(vectors.shape)
    return found
