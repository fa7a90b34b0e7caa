"""Where noise comes from, and the Laplace distribution drawn from it."""

import math
import os
from hashlib import sha256
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms
from numpy.typing import NDArray

MANTISSA_BITS = 53


class NoiseSource(Protocol):
    """Unpredictable uniform bits (in a simulation, repeatable ones)."""

    def uniform_bits(self, n: int) -> bytes:
        """Return n uniform random bytes, independent of all earlier ones."""


class SystemNoise:
    """The operating system's cryptographic generator: what a reader's device uses."""

    def uniform_bits(self, n: int) -> bytes:
        return os.urandom(n)


class SeededNoise:
    """A repeatable ChaCha20 stream, for simulations and tests only.

    Anyone who knows the seed can remove the noise.
    """

    def __init__(self, seed: int | str) -> None:
        key = sha256(f"ownfeed simulated noise {seed}".encode()).digest()
        self._stream: CipherContext = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()

    def uniform_bits(self, n: int) -> bytes:
        """Return the next n bytes of the stream."""
        return self._stream.update(bytes(n))


def laplace(source: NoiseSource, scale: float, shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Return independent draws of Laplace(0, scale), in the unit of scale.

    Inverse distribution function: |x| = -scale ln(u), u uniform on {1, ..., 2^53} / 2^53, and a sign bit of its own.
    Raises ValueError unless scale is positive and finite.

    Formal guarantees: none by itself. The distribution is that of a Laplace variable rounded to doubles: |x| never
    passes 36.74 scale, which a true Laplace variable does with probability 2^-53, and only some doubles near 0 can
    occur (Mironov, CCS 2012). See `mechanisms.basis_laplace` for what that means.
    """
    if not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be positive and finite; got {scale}")
    words = np.frombuffer(source.uniform_bits(8 * math.prod(np.atleast_1d(shape).tolist())), dtype="<u8")
    # 53 bits make u; int64 first, since numpy turns it into float64 several times faster than uint64.
    draws = ((words >> np.uint64(64 - MANTISSA_BITS)).view(np.int64) + 1).astype(np.float64)
    draws *= 2.0**-MANTISSA_BITS
    np.log(draws, out=draws)
    draws *= scale
    # Bit 0, which u doesn't use, becomes the sign bit.
    draws.view(np.uint64)[...] ^= words << np.uint64(63)
    return draws.reshape(shape)
