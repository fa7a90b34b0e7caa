"""Fixed-point numbers as elements of the ring of integers mod 2^k, in which masked vectors are summed."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RingVector = NDArray[np.unsignedinteger[Any]]

DTYPES = {8: "<u1", 16: "<u2", 32: "<u4", 64: "<u8"}
"""Element types on the wire, little-endian. 8 and 16 bits are for worked examples."""

DECODED_AT_ONCE = 1 << 16
"""Elements that `decode` turns into float64 at a time: half a megabyte beside the result."""


class RingError(ValueError):
    """Numbers that don't fit the ring; the message names them."""


def ring_dtype(bits: int) -> np.dtype[Any]:
    """The unsigned type whose arithmetic is that of Z_{2^bits}. Raises RingError for another width."""
    if bits not in DTYPES:
        raise RingError(f"bits: a ring has {', '.join(map(str, DTYPES))} bits, got {bits}")
    return np.dtype(DTYPES[bits])


def as_integers(vector: RingVector) -> NDArray[np.int64]:
    """Ring elements as centred integers: those of 2^(k-1) and above are negative."""
    width = vector.dtype.itemsize
    return vector.astype(f"<u{width}", copy=False).view(f"<i{width}").astype(np.int64)


def from_integers(values: NDArray[np.int64], bits: int) -> RingVector:
    """Integers reduced mod 2^bits; negative ones wrap."""
    return np.asarray(values.view(np.uint64).astype(ring_dtype(bits)))


@dataclass(frozen=True)
class FixedPoint:
    """How real values become ring elements: enc(x) = round(clip(x, -X, X) 2^f) mod 2^k.

    Args:
        bits: k.
        fraction_bits: f; one step is 2^-f.
        bound: X, of every value of one contributor, after its weight.
        contributors: n, the most vectors that may go into one sum.
        headroom: steps left free for noise inside the sum, in absolute value; 0 where none is added.

    Raises RingError when made, unless n X 2^f + headroom < 2^(k-1): a sum could wrap around and nobody would know.
    """

    bits: int
    fraction_bits: int
    bound: float
    contributors: int
    headroom: float = 0.0

    def __post_init__(self) -> None:
        ring_dtype(self.bits)
        if self.fraction_bits < 0:
            raise RingError(f"fraction_bits: at least 0, got {self.fraction_bits}")
        if not (math.isfinite(self.bound) and self.bound > 0):
            raise RingError(f"bound: positive and finite, got {self.bound}")
        if self.contributors < 1:
            raise RingError(f"contributors: at least 1, got {self.contributors}")
        reach = self.contributors * self.bound * 2.0**self.fraction_bits + self.headroom
        if not reach < 2.0 ** (self.bits - 1):
            raise RingError(
                f"overflow: n X 2^f + headroom = {self.contributors} x {self.bound:g} x 2^{self.fraction_bits} + "
                f"{self.headroom:g} = {reach:.6g} must be below 2^(k-1) = 2^{self.bits - 1} = {2 ** (self.bits - 1)}"
            )

    @property
    def step(self) -> float:
        """2^-f: the distance of neighbouring encoded values."""
        return 2.0**-self.fraction_bits

    def encode(self, values: NDArray[np.floating[Any]]) -> RingVector:
        """Round to the nearest step, ties to even. Raises RingError for NaN or infinity."""
        return from_integers(np.rint(self._scaled(values)).astype(np.int64), self.bits)

    def encode_stochastic(
        self, values: NDArray[np.floating[Any]], uniform_bits: Callable[[int], bytes] = os.urandom
    ) -> RingVector:
        """Round up with the probability of the fraction, so that the code is right on average.

        The mean is off by at most 2^-32 steps; the price is a variance of up to a quarter of a squared step. The coins
        come from `uniform_bits`, by default the operating system's cryptographic generator.
        """
        scaled = self._scaled(values)
        floors = np.floor(scaled)
        coins = np.frombuffer(uniform_bits(4 * scaled.size), dtype="<u4").reshape(scaled.shape)
        ups = (scaled - floors) * 2.0**32 > coins
        return from_integers((floors + ups).astype(np.int64), self.bits)

    def decode(self, total: RingVector) -> NDArray[np.float64]:
        """centred(y) / 2^f, of one code or of a sum; in memory only the result is whole."""
        decoded = np.empty(total.shape, dtype=np.float64)
        codes, values = total.reshape(-1), decoded.reshape(-1)
        for start in range(0, codes.size, DECODED_AT_ONCE):
            part = slice(start, start + DECODED_AT_ONCE)
            np.multiply(as_integers(codes[part]), self.step, out=values[part])
        return decoded

    def rounded_to_zero(self, values: NDArray[np.floating[Any]], codes: RingVector) -> float:
        """The share of the non-zero values whose code is 0: what this step size loses."""
        nonzero = np.count_nonzero(values)
        lost = np.count_nonzero((values != 0) & (codes == 0))
        return float(lost / nonzero) if nonzero else 0.0

    def _scaled(self, values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        if not np.isfinite(values).all():
            raise RingError("values: NaN or infinity has no code")
        scaled: NDArray[np.float64] = values.astype(np.float64)
        np.clip(scaled, -self.bound, self.bound, out=scaled)
        scaled *= 2.0**self.fraction_bits
        return scaled
