"""A 32-byte seed stretched into a mask of any length by ChaCha20, and masks added to a vector in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from device_app.wire.ring import RingVector, ring_dtype

SEED_BYTES = 32
CHUNK_BYTES = 128 * 1024
"""Of a vector and of a mask each: small enough that both stay in the processor's second-level cache."""


class MaskStream(Protocol):
    """A mask as a stream of bytes."""

    def fill(self, out: NDArray[np.uint8]) -> None:
        """Write the next bytes of the mask over `out`."""


class ChaChaStream:
    """The ChaCha20 keystream of a seed (RFC 8439), nonce and counter zero.

    Formal guarantees: whoever doesn't know the seed can't tell the mask from uniform ring elements, as long as ChaCha20
    is a pseudo-random function; a ring of 2^k elements takes whole little-endian words, so nothing is biased. A seed
    must make one mask only: two vectors under one mask show their difference.
    """

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"seed: {SEED_BYTES} bytes, got {len(seed)}")
        self._stream = Cipher(algorithms.ChaCha20(seed, bytes(16)), mode=None).encryptor()

    def fill(self, out: NDArray[np.uint8]) -> None:
        """Write the next bytes of the mask over `out`."""
        self._stream.update_into(_ZEROS[: out.size], out.data)


_ZEROS = memoryview(bytes(CHUNK_BYTES))

OpenStream = Callable[[bytes], MaskStream]


def expand(seed: bytes, length: int, bits: int = 32, open_stream: OpenStream = ChaChaStream) -> RingVector:
    """The mask PRG(seed): `length` elements of Z_{2^bits}."""
    mask = np.zeros(length, dtype=ring_dtype(bits))
    apply_masks(mask, plus=[seed], open_stream=open_stream)
    return mask


def apply_masks(
    vector: RingVector,
    plus: Iterable[bytes] = (),
    minus: Iterable[bytes] = (),
    open_stream: OpenStream = ChaChaStream,
) -> None:
    """vector += sum of PRG(plus) - sum of PRG(minus), in place and modulo the ring, in the memory of one chunk more.

    Every mask is made chunk by chunk beside the chunk of the vector it goes to, so no mask is ever whole in memory.
    Raises ValueError for a vector that is not contiguous.
    """
    if not vector.flags.c_contiguous:
        raise ValueError("vector: must be contiguous")
    adding = [open_stream(seed) for seed in plus]
    taking = [open_stream(seed) for seed in minus]
    flat = vector.reshape(-1)
    width = vector.dtype.itemsize
    block = CHUNK_BYTES // width
    scratch = np.empty(min(CHUNK_BYTES, flat.size * width), dtype=np.uint8)
    for start in range(0, flat.size, block):
        part = flat[start : start + block]
        raw = scratch[: part.size * width]
        mask = raw.view(vector.dtype)
        for stream in adding:
            stream.fill(raw)
            part += mask
        for stream in taking:
            stream.fill(raw)
            part -= mask
