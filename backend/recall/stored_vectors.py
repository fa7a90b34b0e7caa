"""Stores the pool's vectors in an append-only file that successive catalogues share.

A million articles are a gigabyte of vectors, of which a request needs a few hundred rows. The operating system maps the
file in pages, and can evict them if memory is short. The file has no name, so it disappears with the last catalogue
that uses it, however the process ends. A small pool's vectors stay in memory.
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
"""Minimum size of a mapped pool: a quarter of a million articles of 256 numbers. Smaller pools stay in memory."""
ROOM_SHARE, ROOM_LEAST = 0.25, 1_024
"""Spare room for new vectors in a new file. When it is used up, the remaining vectors are copied to a new file."""
ROWS_AT_ONCE = 16_384

Floats = NDArray[np.float32]
Places = NDArray[np.intp]

_log = logging.getLogger(__name__)


class VectorFile:
    """Rows float32 [capacity, D], each written once. Safe to read while another thread adds rows.

    folder: where a large file is stored; without it, or if the disk refuses the file, the rows stay in memory.
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
                _log.warning("vectors can't be stored on disk (%s); they stay in memory", refused.strerror or refused)
        self._memory = np.empty(shape, dtype=np.float32)
        self.rows = self._memory.view()
        self.rows.flags.writeable = False

    def add(self, vectors: Floats) -> int | None:
        """Append rows [m, D]; return the place of the first, or None if there is no room for them.

        Raises OSError if the disk refuses the write; nothing is then added.
        """
        with self._adding:
            start = self.filled
            if start + len(vectors) > self.capacity:
                return None
            if self._file is None:
                self._memory[start : start + len(vectors)] = vectors
            else:
                # Uses write(), so that a full disk raises; a store to the mapped pages would crash the process.
                rest = memoryview(np.ascontiguousarray(vectors, dtype=np.float32).tobytes())
                at = start * self.rows.strides[0]
                while rest:
                    written = os.pwrite(self._file.fileno(), rest, at)
                    rest, at = rest[written:], at + written
            self.filled = start + len(vectors)
            return start

    def cut(self, filled: int) -> None:
        """Truncate to `filled` rows and reuse the rest, which nobody may be using."""
        with self._adding:
            self.filled = min(self.filled, filled)


class StoredVectors:
    """Immutable vectors [n, D] of a snapshot: row r is at places[r] of a file that snapshots share.

    Indexing takes a slice or an array of rows and returns an array; numpy.asarray returns all rows.
    """

    def __init__(self, file: VectorFile, places: Places) -> None:
        self._file, self._places = file, places
        count = len(places)
        has_all = not count or (places[0] == 0 and places[-1] == count - 1 and bool((np.diff(places) == 1).all()))
        self._all_rows: Floats | None = file.rows[:count] if has_all else None

    @classmethod
    def room_for(cls, count: int, dimensions: int, folder: Path | None) -> Self:
        """An empty snapshot in a file with room for `count` rows and some more."""
        capacity = count + max(ROOM_LEAST, int(ROOM_SHARE * count))
        return cls(VectorFile(dimensions, capacity, folder), np.empty(0, dtype=np.intp))

    @classmethod
    def of(cls, vectors: Floats, folder: Path | None = None) -> Self:
        """A snapshot of these rows."""
        return cls.room_for(len(vectors), vectors.shape[1], folder).extended(vectors, folder)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def shape(self) -> tuple[int, int]:
        """[n, D]"""
        return len(self._places), self._file.rows.shape[1]

    def __getitem__(self, rows: Any) -> Floats:
        found: Floats = self._file.rows[self._places[rows]] if self._all_rows is None else self._all_rows[rows]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)

    def extended(self, more: Floats, folder: Path | None) -> Self:
        """A snapshot with `more` rows [m, D] appended, in the same file or, if it is full, in a larger one."""
        return self.changed(np.ones(len(self), dtype=bool), np.full(len(more), len(self)), more, folder)

    def changed(
        self,
        kept: NDArray[np.bool_],
        before: Places,
        more: Floats,
        folder: Path | None,
        held: Places | None = None,
    ) -> Self:
        """A snapshot of the kept rows [n], with `more` rows [m, D] inserted before the kept ones at `before` [m],
        ascending.

        It uses the same file while there is room, else a new one in `folder`, to which kept rows are copied. held: for
        each row of `more`, the row of this snapshot with the identical vector, which needn't be stored again; -1 if
        there is none.
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
        """How many rows the file holds, including those of other snapshots."""
        return self._file.filled

    def taken_back(self, filled: int) -> None:
        """Undo the last addition by cutting the file to `filled` rows.

        Nobody may be using the removed ones.
        """
        self._file.cut(filled)

    def found_in(self, other: StoredVectors) -> Places | None:
        """For each row the row of `other` with the identical vector, -1 if there is none.

        None if they share no file.
        """
        if self._file is not other._file:
            return None
        row_at = np.full(self._file.filled, -1, dtype=np.intp)
        row_at[other._places] = np.arange(len(other))
        found: Places = row_at[self._places]
        return found
