"""The pool's vectors in a file that only grows, so that a catalogue with a hundred new ones shares it with the last.

A million news are a gigabyte of vectors, of which a request needs a few hundred rows. The operating system reads the
file in pages, and takes them back where memory is short. It has no name, so that it goes with the last catalogue that
holds it, whichever way the process ends. A small pool's vectors stay in memory.
"""

from __future__ import annotations

import logging
import mmap
import os
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

MAPPED_FROM_BYTES = 256 * 1024**2
"""A quarter of a million news of 256 numbers; smaller pools stay in memory."""
ROOM_SHARE, ROOM_LEAST = 0.25, 1_024
"""Room for new vectors behind those that a file begins with. Once it is used up a new file is made of what is left."""
ROWS_AT_ONCE = 16_384

Floats = NDArray[np.float32]
Places = NDArray[np.intp]

_log = logging.getLogger(__name__)


class VectorFile:
    """Rows float32 [capacity, D], written once each. Safe to read while another thread adds.

    folder: of the file, if it is large; None, and a disk that takes nothing, leave the rows in memory.
    """

    def __init__(self, dimensions: int, capacity: int, folder: Path | None) -> None:
        self.capacity, self.filled = capacity, 0
        self._adding = threading.Lock()
        self._file: BinaryIO | None = None
        shape, size = (capacity, dimensions), 4 * capacity * dimensions
        if folder is not None and size >= MAPPED_FROM_BYTES:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (it lives as long as the rows)
                weakref.finalize(self, self._file.close)
                self._file.truncate(size)
                pages = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ)
                self.rows: Floats = np.frombuffer(pages, dtype=np.float32).reshape(shape)
                return
            except OSError as refused:
                self._file = None
                _log.warning("vectors can't be kept on disk (%s); they stay in memory", refused.strerror or refused)
        self._memory = np.empty(shape, dtype=np.float32)
        self.rows = self._memory.view()
        self.rows.flags.writeable = False

    def add(self, vectors: Floats) -> int | None:
        """Write rows [m, D] behind the others; the place of the first, or None where there isn't room for them.

        Raises OSError where the disk takes nothing more; nothing is then added.
        """
        with self._adding:
            start = self.filled
            if start + len(vectors) > self.capacity:
                return None
            if self._file is None:
                self._memory[start : start + len(vectors)] = vectors
            else:
                # By writing, since a full disk then raises; a write into the mapped pages would end the process.
                rest = memoryview(np.ascontiguousarray(vectors, dtype=np.float32).tobytes())
                at = start * self.rows.strides[0]
                while rest:
                    written = os.pwrite(self._file.fileno(), rest, at)
                    rest, at = rest[written:], at + written
            self.filled = start + len(vectors)
            return start

    def cut(self, filled: int) -> None:
        """Use the room behind so many rows again; nobody may hold those."""
        with self._adding:
            self.filled = min(self.filled, filled)


class StoredVectors:
    """Vectors [n, D] of a snapshot: row r lies at places[r] of a file that snapshots share. Never changed.

    Indexing takes a slice or an array of rows and gives an array; numpy.asarray gives all of it.
    """

    def __init__(self, file: VectorFile, places: Places) -> None:
        self._file, self._places = file, places
        count = len(places)
        is_whole = not count or (places[0] == 0 and places[-1] == count - 1 and bool((np.diff(places) == 1).all()))
        self._whole: Floats | None = file.rows[:count] if is_whole else None

    @classmethod
    def room_for(cls, count: int, dimensions: int, folder: Path | None) -> Self:
        """None so far, in a file with room for so many and some more."""
        capacity = count + max(ROOM_LEAST, int(ROOM_SHARE * count))
        return cls(VectorFile(dimensions, capacity, folder), np.empty(0, dtype=np.intp))

    @classmethod
    def of(cls, vectors: Floats, folder: Path | None = None) -> Self:
        """These rows."""
        return cls.room_for(len(vectors), vectors.shape[1], folder).extended(vectors, folder)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def shape(self) -> tuple[int, int]:
        """[n, D]"""
        return len(self._places), self._file.rows.shape[1]

    def __getitem__(self, rows: Any) -> Floats:
        found: Floats = self._file.rows[self._places[rows]] if self._whole is None else self._whole[rows]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)

    def extended(self, more: Floats, folder: Path | None) -> Self:
        """These and, behind them, more rows [m, D]: in the same file, or in a larger one where it is full."""
        return self.changed(np.ones(len(self), dtype=bool), np.full(len(more), len(self)), more, folder)

    def changed(
        self,
        kept: NDArray[np.bool_],
        before: Places,
        more: Floats,
        folder: Path | None,
        held: Places | None = None,
    ) -> Self:
        """Those that are kept [n], with rows more [m, D] put before the kept ones that `before` [m], ascending, names.

        In the same file while it has room; else in a new one in `folder`, to which what is kept is copied. held: of
        each of `more` the row of these which is the very same vector, and so needn't be stored again; -1 where none is.
        """
        new = np.ones(len(more), dtype=bool) if held is None else held < 0
        places = self._places if kept.all() else self._places[kept]
        try:
            start = self._file.add(more if new.all() else more[new])
            if start is not None:
                added = np.empty(len(more), dtype=np.intp)
                added[new] = np.arange(start, start + int(new.sum()))
                if held is not None:
                    added[~new] = self._places[held[~new]]
                return type(self)(self._file, np.insert(places, before, added))
            return self._moved(places, before, more, folder)
        except OSError as refused:
            _log.warning("no more vectors fit on the disk (%s); they stay in memory", refused.strerror or refused)
            return self._moved(places, before, more, None)

    def _moved(self, places: Places, before: Places, more: Floats, folder: Path | None) -> Self:
        fresh = type(self).room_for(len(places) + len(more), more.shape[1], folder)._file
        for at in range(0, len(places), ROWS_AT_ONCE):
            fresh.add(self._file.rows[places[at : at + ROWS_AT_ONCE]])
        fresh.add(more)
        return type(self)(fresh, np.insert(np.arange(len(places)), before, np.arange(len(places), fresh.filled)))

    @property
    def filled(self) -> int:
        """How many rows the file holds, those of other snapshots among them."""
        return self._file.filled

    def taken_back(self, filled: int) -> None:
        """Make the file as long as it was before what was added last, which nobody may hold."""
        self._file.cut(filled)

    def found_in(self, other: StoredVectors) -> Places | None:
        """For each row the row of `other` that is the very same vector, -1 where there is none; None if they share no
        file."""
        if self._file is not other._file:
            return None
        row_at = np.full(self._file.filled, -1, dtype=np.intp)
        row_at[other._places] = np.arange(len(other))
        found: Places = row_at[self._places]
        return found
