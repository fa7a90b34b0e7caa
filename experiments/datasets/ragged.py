"""Rows of different lengths in two flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ragged:
    """Row i is values[offsets[i] : offsets[i + 1]]; values int64 [total], offsets int64 [n + 1] from 0 to total."""

    values: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        steps = np.diff(self.offsets)
        if not len(self.offsets) or self.offsets[0] != 0 or self.offsets[-1] != len(self.values) or (steps < 0).any():
            raise ValueError(f"offsets must rise from 0 to the {len(self.values)} values")

    @classmethod
    def of(cls, rows: Iterable[Sequence[int] | NDArray[np.int64]]) -> Ragged:
        """From rows of integers."""
        kept = [np.asarray(row, dtype=np.int64) for row in rows]
        offsets = np.concatenate(([0], np.cumsum([len(row) for row in kept]))).astype(np.int64)
        return cls(np.concatenate([*kept, np.zeros(0, np.int64)]), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.int64]:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64 [n]: the length of each row."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> NDArray[np.int64]:
        """The row that each value stands in, [total]."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def last(self, most: int, *, padding: int) -> NDArray[np.int64]:
        """The last `most` values of each row, left-padded: int64 [n, most]."""
        places = self.offsets[1:, None] - np.arange(most, 0, -1)  # [n, most]
        real = places >= self.offsets[:-1, None]
        if not len(self.values):
            return np.full(places.shape, padding, dtype=np.int64)
        return np.where(real, self.values[np.where(real, places, 0)], padding)
