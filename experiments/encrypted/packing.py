"""Many fixed-point numbers in one Paillier message, with room for what is to be added and multiplied.

A slot holds a signed integer; the message is sum_i x_i 2^(w i), and slots are read from the lowest on, each giving back
what a negative one below it has borrowed. This holds for sums and multiples whose slots stay below 2^(w-1) either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Hides(Protocol):
    """A key that makes ciphertexts."""

    def encrypt(self, message: int) -> Any:
        """A fresh ciphertext."""
        ...


class Adds(Protocol):
    """What a server can do with ciphertexts it can't read."""

    def add(self, first: Any, second: Any) -> Any:
        """A ciphertext of the sum of both messages."""
        ...

    def times(self, cipher: Any, factor: int) -> Any:
        """A ciphertext of the message times factor, an integer of either sign."""
        ...

    def nothing(self) -> Any:
        """A ciphertext of 0, to begin a sum with."""
        ...


class Opens(Hides, Protocol):
    """A private key, which opens ciphertexts."""

    @property
    def public(self) -> Adds:
        """The half of the key that the server computes with."""
        ...

    def decrypt(self, cipher: Any) -> int:
        """The message of a ciphertext."""
        ...


class CapacityExceeded(ValueError):
    """A slot could overflow by the next operation; the message says how many bits it would take."""


@dataclass(frozen=True)
class Packing:
    """w bits a slot, f fraction bits of what is encoded, and the key's size.

    Raises ValueError if not even one slot fits.
    """

    key_bits: int
    slot_bits: int
    fraction_bits: int = 16

    def __post_init__(self) -> None:
        if self.fraction_bits < 0 or self.slot_bits <= self.fraction_bits + 1:
            raise ValueError(
                f"slot_bits: above the {self.fraction_bits} fraction bits and a sign, got {self.slot_bits}"
            )
        if self.slots < 1:
            raise ValueError(f"slot_bits: at most {self.key_bits - 2} for this key, got {self.slot_bits}")

    @property
    def slots(self) -> int:
        """Numbers a ciphertext. Two bits of the key are left for the sign and for n being no power of two."""
        return (self.key_bits - 2) // self.slot_bits

    @property
    def step(self) -> float:
        """The encoding step: a number is rounded to the nearest multiple of it."""
        return 2.0**-self.fraction_bits

    def ciphers(self, length: int) -> int:
        """How many ciphertexts a vector of this length takes."""
        return -(-length // self.slots)

    def pack(self, integers: Sequence[int]) -> int:
        """At most `slots` integers as one message."""
        message = 0
        for place in range(len(integers) - 1, -1, -1):
            message = (message << self.slot_bits) + integers[place]
        return message

    def unpack(self, message: int, count: int) -> list[int]:
        """What `pack` took, or the sum of such. Raises ValueError if something is left over, so a slot had no room."""
        half, whole = 1 << (self.slot_bits - 1), 1 << self.slot_bits
        found = []
        for _ in range(count):
            slot = (message + half) % whole - half
            found.append(slot)
            message = (message - slot) >> self.slot_bits
        if message:
            raise ValueError("message: more than its slots hold")
        return found


@dataclass(frozen=True)
class Encrypted:
    """A vector under encryption: value = slot / denominator.

    Args:
        ciphers: of `packing.slots` numbers each.
        length: of the vector.
        denominator: what a decrypted integer is divided by; public.
        bound: no integer in a slot is larger, by what is publicly known; it may not reach 2^(w-1).
    """

    ciphers: tuple[Any, ...]
    length: int
    denominator: int
    bound: int
    packing: Packing

    def __post_init__(self) -> None:
        if self.bound >= 1 << (self.packing.slot_bits - 1):
            raise CapacityExceeded(
                f"{self.bound.bit_length() + 1} bits a slot, there are {self.packing.slot_bits}: encrypt it anew"
            )

    @property
    def size_bytes(self) -> int:
        """On the wire."""
        return len(self.ciphers) * ((2 * self.packing.key_bits + 7) // 8)


def encrypt(
    values: NDArray[np.floating[Any]], key: Hides, packing: Packing, *, bound: float, weight: int = 1
) -> Encrypted:
    """weight * values, each rounded to a multiple of the encoding step, in fresh ciphertexts.

    bound: of |values|; public, and the same for every client. Raises ValueError for a value beyond it or not finite.
    """
    vector = np.asarray(values, dtype=np.float64).reshape(-1)
    if not np.isfinite(vector).all() or (len(vector) and np.abs(vector).max() > bound):
        raise ValueError(f"values: finite and within {bound}")
    scale = 1 << packing.fraction_bits
    integers = [weight * int(each) for each in np.rint(vector * scale)]
    starts = range(0, len(integers), packing.slots)
    ciphers = tuple(key.encrypt(packing.pack(integers[start : start + packing.slots])) for start in starts)
    return Encrypted(ciphers, len(integers), scale, weight * (int(bound * scale) + 1), packing)


def decrypt(found: Encrypted, key: Opens) -> NDArray[np.float64]:
    """The values, rounded to float64 once."""
    integers: list[int] = []
    for start, cipher in zip(range(0, found.length, found.packing.slots), found.ciphers, strict=True):
        integers += found.packing.unpack(key.decrypt(cipher), min(found.packing.slots, found.length - start))
    return np.array([each / found.denominator for each in integers], dtype=np.float64)


def weighted_sum(terms: Sequence[tuple[Fraction | int, Encrypted]], key: Adds) -> Encrypted:
    """sum_i factor_i x_i, without the private key: factors become integers over the least common denominator.

    Raises ValueError without terms or for vectors of several lengths or packings, and CapacityExceeded.
    """
    if not terms:
        raise ValueError("terms: at least one")
    first = terms[0][1]
    if any(each.length != first.length or each.packing != first.packing for _, each in terms):
        raise ValueError("terms: vectors of one length and packing")
    parts = [(Fraction(factor) / each.denominator, each) for factor, each in terms]
    denominator = int(np.lcm.reduce([part.denominator for part, _ in parts], dtype=object))
    integers = [(int(part * denominator), each) for part, each in parts]
    bound = sum(abs(factor) * each.bound for factor, each in integers)
    # Checked before the work and not after it.
    Encrypted((), 0, 1, bound, first.packing)
    ciphers = [key.nothing()] * len(first.ciphers)
    for factor, each in integers:
        for place, cipher in enumerate(each.ciphers):
            ciphers[place] = key.add(ciphers[place], cipher if factor == 1 else key.times(cipher, factor))
    return Encrypted(tuple(ciphers), first.length, denominator, bound, first.packing)
