"""Fixed-point numbers in the ring of integers mod 2^k, in which masked vectors are summed.

`UpdateLayout` encodes a weighted update as one ring vector, and reads an opened sum as a weighted mean
(Efficient-FedRec, 3.4). Besides gradients, a device may contribute to secure sums its evaluation of a release, and its
user vector in the row of its group.

An evaluation is three numbers of a bounded vector:
gain    AUC under the new weights minus that under the old, clipped to +-GAIN_LIMIT, divided by GAIN_LIMIT
level   AUC under the new weights, scaled to -1 (0) .. 1 (1), times DETAIL_WEIGHT
square  gain squared, times DETAIL_WEIGHT, for the variance between devices

Prototypes are learned from user vectors; each is in the row of its reader's group.

Masks are 32-byte seeds, expanded by ChaCha20 and added to a vector in place.
"""

import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

RingVector = NDArray[np.unsignedinteger[Any]]

DTYPES = {8: "<u1", 16: "<u2", 32: "<u4", 64: "<u8"}
"""Element types on the wire, little-endian. 8 and 16 bits are for worked examples."""

DECODED_AT_ONCE = 1 << 16
"""Elements that `decode` converts to float64 at a time: half a megabyte in addition to the result."""


class RingError(ValueError):
    """Numbers don't fit the ring; the message names them."""


def ring_dtype(bits: int) -> np.dtype[Any]:
    """Return the unsigned type whose arithmetic is that of Z_{2^bits}.

    Raises RingError for another width.
    """
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
        headroom: steps left free for noise inside the sum, in absolute value; 0 if no noise is added.

    Raises RingError when made, unless n X 2^f + headroom < 2^(k-1); otherwise a sum could wrap around unnoticed.
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
        """2^-f, the distance between neighbouring encoded values."""
        return 2.0**-self.fraction_bits

    def encode(self, values: NDArray[np.floating[Any]]) -> RingVector:
        """Round to the nearest step, ties to even. Raises RingError for NaN or infinity."""
        return from_integers(np.rint(self._scaled(values)).astype(np.int64), self.bits)

    def decode(self, total: RingVector) -> NDArray[np.float64]:
        """Return centred(y) / 2^f for one code or a sum; only the result is fully in memory."""
        decoded = np.empty(total.shape, dtype=np.float64)
        codes, values = total.reshape(-1), decoded.reshape(-1)
        for start in range(0, codes.size, DECODED_AT_ONCE):
            part = slice(start, start + DECODED_AT_ONCE)
            np.multiply(as_integers(codes[part]), self.step, out=values[part])
        return decoded

    def rounded_to_zero(self, values: NDArray[np.floating[Any]], codes: RingVector) -> float:
        """Return the share of nonzero values whose code is 0: the loss caused by this step size."""
        nonzero = np.count_nonzero(values)
        lost = np.count_nonzero((values != 0) & (codes == 0))
        return float(lost / nonzero) if nonzero else 0.0

    def _scaled(self, values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        if not np.isfinite(values).all():
            raise RingError("values: NaN and infinity can't be encoded")
        scaled: NDArray[np.float64] = values.astype(np.float64)
        np.clip(scaled, -self.bound, self.bound, out=scaled)
        scaled *= 2.0**self.fraction_bits
        return scaled


@dataclass(frozen=True)
class WeightedMean:
    """The result of an opened sum: by name, (1/N) sum n_u g_u in float64, and N.

    N is 0 if nobody had samples.
    """

    tensors: Mapping[str, NDArray[np.float64]]
    samples: int


@dataclass(frozen=True)
class WeightedSum:
    """The exact result of an opened sum: by name, sum n_u g_u in float64, and N."""

    tensors: Mapping[str, NDArray[np.float64]]
    samples: int

    def mean(self) -> WeightedMean:
        """Return the sum divided by N, the samples behind it."""
        return WeightedMean({name: each / max(1, self.samples) for name, each in self.tensors.items()}, self.samples)


@dataclass(frozen=True)
class UpdateLayout:
    """The layout of the vector: [n_u g by ascending name, each in C order | n_u].

    Rows of article vectors are one tensor, in ascending id. n_u is a plain integer, without fraction bits.

    Args:
        shapes: shapes of the tensors, by name.
        fixed: the encoding of n_u g; its bound applies to the weighted values, so a larger n_u |g| is clipped.
        samples_limit: the maximum n_u.
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
        """How many numbers an update has without n_u.

        The papers count these as one direction of communication.
        """
        return sum(math.prod(shape) for shape in self.shapes.values())

    def encode(self, mean_gradient: Mapping[str, NDArray[np.floating[Any]]], samples: int) -> RingVector:
        """Return a device's vector from its mean gradient g_u and its n_u.

        Raises ValueError for another name or shape, or n_u outside 0 .. samples_limit; RingError for NaN.
        """
        if not 0 <= samples <= self.samples_limit:
            raise ValueError(f"samples: 0 to {self.samples_limit}, got {samples}")
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
        """Return the weighted mean of an opened sum.

        If no value was clipped, each coordinate is within n / (N 2^(f+1)) of the exact mean (n devices, N samples, f
        fraction bits). Raises ValueError like `sums`.
        """
        return self.sums(total).mean()

    def sums(self, total: RingVector) -> WeightedSum:
        """Return the opened sum itself.

        Raises ValueError for a vector of another length, or an impossible N.
        """
        if total.shape != (self.length,):
            raise ValueError(f"total: expected {self.length} elements, got {total.shape}")
        samples = int(as_integers(total[-1:])[0])
        if not 0 <= samples <= self.fixed.contributors * self.samples_limit:
            raise ValueError(f"samples: {samples} in total, more than {self.fixed.contributors} devices can have")
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
    """Return h_u: a random nonzero element at each of these rows, zeros elsewhere.

    Source: Efficient-FedRec, eq. 8. Use the marks in one round only: the difference between two sums of the same marks
    would show who joined or left.

    Formal guarantees: the sum of such vectors is zero at a row that nobody marked and uniform where at least one device
    did (except that with one owner it is never zero), so it reveals which rows are marked, but not by how many devices.
    With two or more owners the sum of a row is zero with probability about 2^-bits; the row is then missing from the
    union.
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
    """Return the union: the nonzero rows of an opened sum of marks, ascending."""
    return np.flatnonzero(total).astype(np.int64)


GAIN_LIMIT = 0.03
"""Cap of a device's gain: a mean of bounded gains understates a large loss, and can't invent one."""
DETAIL_WEIGHT = 0.25
"""Weight of level and square relative to gain: they decide nothing alone, so they get less of the vector's length."""
GAIN, LEVEL, SQUARE = "gain", "level", "square"
SHAPES = {GAIN: (1,), LEVEL: (1,), SQUARE: (1,)}
BOUND = math.sqrt(1 + 2 * DETAIL_WEIGHT**2)
"""L2 bound of a device's vector."""


def written(new_auc: float, old_auc: float) -> dict[str, float]:
    """Return one device's evaluation as tensors by name."""
    gain = max(-1.0, min(1.0, (new_auc - old_auc) / GAIN_LIMIT))
    return {GAIN: gain, LEVEL: DETAIL_WEIGHT * (2 * new_auc - 1), SQUARE: DETAIL_WEIGHT * gain**2}


PROTOTYPES = "prototypes"
"""The material, and its tensor: float32 [K, D], rows of length 1."""
SUMS = "sums"
MEMBERS = "members"
VECTOR_SHARE = 0.95
"""Length of the vector's row in an update of length 1. The count is one number against D, so it gets little of the
length."""


def member_share() -> float:
    """Return the value of the count in an update of length 1."""
    return math.sqrt(1 - VECTOR_SHARE**2)


SEED_BYTES = 32
BLOCK_BYTES = 64
CHUNK_BYTES = 64 * 1024
"""Chunk of a vector and of a mask: both fit the processor's second-level cache, and call overhead stays small."""
STREAMS_OPEN = 64
"""Streams of each sign open at a time, since a server opening a cohort of hundreds has thousands of masks to
subtract.
"""


class ChaChaStream:
    """The ChaCha20 keystream of a seed (RFC 8439), with nonce zero.

    It starts at byte `start`, a multiple of 64.

    Formal guarantees: without the seed, the mask can't be distinguished from uniform ring elements, as long as ChaCha20
    is a pseudo-random function; a ring of 2^k elements takes whole little-endian words, so nothing is biased. A seed
    must be used for one mask only: two vectors under the same mask reveal their difference.
    """

    def __init__(self, seed: bytes, start: int = 0) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"seed: {SEED_BYTES} bytes, got {len(seed)}")
        if start % BLOCK_BYTES:
            raise ValueError(f"start: a multiple of {BLOCK_BYTES}, got {start}")
        counter = (start // BLOCK_BYTES).to_bytes(4, "little")
        self._stream = Cipher(algorithms.ChaCha20(seed, counter + bytes(12)), mode=None).encryptor()

    def fill(self, out: memoryview) -> None:
        """Write the next bytes of the mask over `out`, at most CHUNK_BYTES."""
        self._stream.update_into(_ZEROS if len(out) == CHUNK_BYTES else _ZEROS[: len(out)], out)


_ZEROS = memoryview(bytes(CHUNK_BYTES))


def expand(seed: bytes, length: int, bits: int = 32) -> RingVector:
    """Return the mask PRG(seed): `length` elements of Z_{2^bits}."""
    mask = np.zeros(length, dtype=ring_dtype(bits))
    apply_masks(mask, plus=[seed])
    return mask


def apply_masks(
    vector: RingVector, plus: Sequence[bytes] = (), minus: Sequence[bytes] = (), *, threads: int = 1
) -> None:
    """vector += sum of PRG(plus) - sum of PRG(minus), in place and modulo the ring.

    Every mask is generated chunk by chunk and added to its chunk of the vector, so no mask is ever fully in memory:
    only one more chunk per thread. The result doesn't depend on `threads`; each thread works on a part of the vector of
    at least one chunk. Adding takes an eighth of the cipher's time. Raises ValueError for a vector that is not
    contiguous.
    """
    if not vector.flags.c_contiguous:
        raise ValueError("vector: must be contiguous")
    flat = vector.reshape(-1)
    width = vector.dtype.itemsize
    share = max(-(-flat.size // max(1, threads)), CHUNK_BYTES // width)
    share = -(-share // BLOCK_BYTES) * BLOCK_BYTES  # whole cipher blocks, whatever the width

    def work(start: int) -> None:
        for seeds in range(0, max(len(plus), len(minus)), STREAMS_OPEN):
            adding = [ChaChaStream(seed, start * width) for seed in plus[seeds : seeds + STREAMS_OPEN]]
            taking = [ChaChaStream(seed, start * width) for seed in minus[seeds : seeds + STREAMS_OPEN]]
            _apply(flat[start : start + share], adding, taking)

    starts = range(0, flat.size, share)
    if len(starts) <= 1:
        work(0)
        return
    with ThreadPoolExecutor(len(starts)) as pool:
        list(pool.map(work, starts))


def masked_bytes(
    vector: RingVector, plus: Sequence[bytes] = (), minus: Sequence[bytes] = (), *, threads: int = 1
) -> bytes:
    """Return the bytes of a masked vector: vector + sum of PRG(plus) - sum of PRG(minus).

    `vector` isn't changed, and no further copy is made.
    """
    held = BytesIO(vector.data)
    apply_masks(np.frombuffer(held.getbuffer(), dtype=vector.dtype), plus, minus, threads=threads)
    return held.getvalue()


def _apply(flat: RingVector, adding: Sequence[ChaChaStream], taking: Sequence[ChaChaStream]) -> None:
    block = CHUNK_BYTES // flat.itemsize
    scratch = np.empty(min(block, flat.size), dtype=flat.dtype)
    for start in range(0, flat.size, block):
        part = flat[start : start + block]
        mask = scratch[: part.size]
        raw = mask.view(np.uint8).data
        for stream in adding:
            stream.fill(raw)
            np.add(part, mask, out=part)
        for stream in taking:
            stream.fill(raw)
            np.subtract(part, mask, out=part)
