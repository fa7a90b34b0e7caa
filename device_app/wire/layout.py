"""A weighted update as one ring vector, and a sum of such vectors as a weighted mean (Efficient-FedRec, 3.4)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_app.wire.ring import FixedPoint, RingError, RingVector, as_integers, from_integers, ring_dtype


@dataclass(frozen=True)
class WeightedMean:
    """What an opened sum says: by name, (1/N) sum n_u g_u in float64, and N. N is 0 if nobody had samples."""

    tensors: Mapping[str, NDArray[np.float64]]
    samples: int


@dataclass(frozen=True)
class WeightedSum:
    """What an opened sum says, exactly: by name, sum n_u g_u in float64, and N."""

    tensors: Mapping[str, NDArray[np.float64]]
    samples: int

    def mean(self) -> WeightedMean:
        """The sum divided by N, the samples behind it."""
        return WeightedMean({name: each / max(1, self.samples) for name, each in self.tensors.items()}, self.samples)


@dataclass(frozen=True)
class UpdateLayout:
    """Where everything stands in the vector: [n_u g by ascending name, each in C order | n_u].

    Rows of news vectors are one tensor, in ascending news id. n_u is a plain integer, without fraction bits.

    Args:
        shapes: of the tensors, by name.
        fixed: the code of n_u g; its bound is that of the weighted values, so n_u |g| beyond it is cut.
        samples_limit: the cap of n_u.
    """

    shapes: Mapping[str, tuple[int, ...]]
    fixed: FixedPoint
    samples_limit: int

    def __post_init__(self) -> None:
        if not self.shapes:
            raise ValueError("shapes: an update has at least one tensor")
        if self.samples_limit < 1:
            raise ValueError(f"samples_limit: at least 1, got {self.samples_limit}")
        if self.fixed.contributors * self.samples_limit >= 2 ** (self.fixed.bits - 1):
            raise RingError(
                f"overflow: {self.fixed.contributors} x {self.samples_limit} samples must be below "
                f"2^{self.fixed.bits - 1}"
            )

    @property
    def length(self) -> int:
        """Ring elements of a vector."""
        return self.coordinates + 1

    @property
    def coordinates(self) -> int:
        """Numbers of an update without n_u: what the papers count as one direction of communication."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def encode(self, mean_gradient: Mapping[str, NDArray[np.floating[Any]]], samples: int) -> RingVector:
        """A device's vector from its mean gradient g_u and its n_u.

        Raises ValueError for another name or shape, or n_u outside 1 .. samples_limit; RingError for NaN.
        """
        if not 1 <= samples <= self.samples_limit:
            raise ValueError(f"samples: 1 to {self.samples_limit}, got {samples}")
        if mean_gradient.keys() != self.shapes.keys():
            raise ValueError(f"tensors: expected {sorted(self.shapes)}, got {sorted(mean_gradient)}")
        vector = np.empty(self.length, dtype=ring_dtype(self.fixed.bits))
        for name, place in self._places():
            tensor = mean_gradient[name]
            if tensor.shape != self.shapes[name]:
                raise ValueError(f"tensor {name}: shape {tensor.shape}, expected {self.shapes[name]}")
            vector[place] = self.fixed.encode(samples * tensor.astype(np.float64).reshape(-1))
        vector[-1] = samples
        return vector

    def decode(self, total: RingVector) -> WeightedMean:
        """The weighted mean of an opened sum; off by at most n / (N 2^(f+1)) a coordinate where nothing was cut.

        Raises as `sums`.
        """
        return self.sums(total).mean()

    def sums(self, total: RingVector) -> WeightedSum:
        """The opened sum itself.

        Raises ValueError for a vector of another length, or an N that no cohort can have.
        """
        if total.shape != (self.length,):
            raise ValueError(f"total: {self.length} elements, got {total.shape}")
        samples = int(as_integers(total[-1:])[0])
        if not 0 <= samples <= self.fixed.contributors * self.samples_limit:
            raise ValueError(f"samples: {samples} in all, where {self.fixed.contributors} devices have fewer")
        tensors = {name: self.fixed.decode(total[place]).reshape(self.shapes[name]) for name, place in self._places()}
        return WeightedSum(tensors, samples)

    def _places(self) -> Iterable[tuple[str, slice]]:
        start = 0
        for name in sorted(self.shapes):
            end = start + math.prod(self.shapes[name])
            yield name, slice(start, end)
            start = end


def mark_rows(
    rows: Iterable[int], length: int, bits: int, draw: Callable[[int], int] = secrets.randbelow
) -> RingVector:
    """h_u: a random ring element other than zero at each of these rows, zeros elsewhere (Efficient-FedRec, eq. 8).

    For one round only: two sums of the same marks would show who came or went by their difference.

    Formal guarantees: the sum of such vectors is zero at a row that nobody marked and uniform where at least one
    device did (but for zero itself at one owner), so it tells which rows are marked and not by how many. With two or
    more owners a row vanishes with probability about 2^-bits, and is then missing from the union.
    """
    vector = np.zeros(length, dtype=np.int64)
    for row in rows:
        if not 0 <= row < length:
            raise ValueError(f"rows: 0 to {length - 1}, got {row}")
        # Centred, so that 64 bits fit an int64; the distribution mod 2^bits is the same.
        element = draw(2**bits - 1) + 1
        vector[row] = element - 2**bits if element >= 2 ** (bits - 1) else element
    return from_integers(vector, bits)


def marked_rows(total: RingVector) -> NDArray[np.int64]:
    """The union: rows of an opened sum of marks that are not zero, ascending."""
    return np.flatnonzero(total).astype(np.int64)
