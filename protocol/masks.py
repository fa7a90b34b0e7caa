"""Expand 32-byte seeds into masks by ChaCha20, and add masks to a vector in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from protocol.ring import RingVector, ring_dtype

SEED_BYTES = 32
BLOCK_BYTES = 64
CHUNK_BYTES = 64 * 1024
"""Chunk of a vector and of a mask: both fit the processor's second-level cache, and call overhead stays small."""
STREAMS_OPEN = 64
"""Open streams of either sign at a time: a server opening a cohort of hundreds has thousands of masks to subtract."""


class MaskStream(Protocol):
    """A mask as a stream of bytes."""

    def fill(self, out: memoryview) -> None:
        """Write the next bytes of the mask over `out`, at most CHUNK_BYTES."""


class ChaChaStream:
    """The ChaCha20 keystream of a seed (RFC 8439), with nonce zero.

    It starts at byte `start`, a multiple of 64.

    Formal guarantees: whoever doesn't know the seed can't tell the mask from uniform ring elements, as long as ChaCha20
    is a pseudo-random function; a ring of 2^k elements takes whole little-endian words, so nothing is biased. A seed
    must make one mask only: two vectors under one mask show their difference.
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

OpenStream = Callable[[bytes, int], MaskStream]
"""Opens the mask of a seed, starting at this byte."""


def expand(seed: bytes, length: int, bits: int = 32, open_stream: OpenStream = ChaChaStream) -> RingVector:
    """Return the mask PRG(seed): `length` elements of Z_{2^bits}."""
    mask = np.zeros(length, dtype=ring_dtype(bits))
    apply_masks(mask, plus=[seed], open_stream=open_stream)
    return mask


def apply_masks(
    vector: RingVector,
    plus: Sequence[bytes] = (),
    minus: Sequence[bytes] = (),
    *,
    threads: int = 1,
    open_stream: OpenStream = ChaChaStream,
) -> None:
    """vector += sum of PRG(plus) - sum of PRG(minus), in place and modulo the ring.

    Every mask is generated chunk by chunk and added to its chunk of the vector, so no mask is ever fully in memory:
    only one more chunk per thread. The result doesn't depend on `threads`; each works on a part of the vector, of at
    least a chunk. The time is that of the cipher, and an eighth more for the sums. Raises ValueError for a vector that
    is not contiguous.
    """
    if not vector.flags.c_contiguous:
        raise ValueError("vector: must be contiguous")
    flat = vector.reshape(-1)
    width = vector.dtype.itemsize
    share = max(-(-flat.size // max(1, threads)), CHUNK_BYTES // width)
    share = -(-share // BLOCK_BYTES) * BLOCK_BYTES  # whole cipher blocks, whatever the width

    def work(start: int) -> None:
        for seeds in range(0, max(len(plus), len(minus)), STREAMS_OPEN):
            adding = [open_stream(seed, start * width) for seed in plus[seeds : seeds + STREAMS_OPEN]]
            taking = [open_stream(seed, start * width) for seed in minus[seeds : seeds + STREAMS_OPEN]]
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


def _apply(flat: RingVector, adding: Sequence[MaskStream], taking: Sequence[MaskStream]) -> None:
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
