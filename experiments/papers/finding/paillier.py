"""Paillier's cryptosystem (1999), fixed-point packing, and the same interface without encryption.

The cryptosystem computes sums and integer multiples of encrypted numbers without the private key. With n = p q and a
random r,

    E(m) = (1 + n)^m r^n mod n^2;

the product of ciphertexts encrypts the sum of their messages, and the power k the k-fold. Big numbers are GMP's
(gmpy2); primes and r come from the operating system's randomness.

Formal guarantees: ciphertexts hide messages of one length from whoever lacks the private key, if deciding n-th residues
mod n^2 is hard for keys of this size (2,048 bits: about 112 bits of security, 3,072: 128). Anyone can change a
ciphertext's message, and ciphertexts don't authenticate their sender. gmpy2's powers do not run in constant time: keep
the private key where nobody can measure. This is a research implementation that nobody but us has reviewed.

Packing: many fixed-point numbers in one message, with room for sums and integer multiples. A slot holds a signed
integer; the message is sum_i x_i 2^(w i). Slots are read from the lowest up, each returning what a negative slot below
it borrowed. This is exact for sums and multiples whose slots stay within -2^(w-1) and 2^(w-1).

Without encryption: FINDING-HE runs through the same encoding, packing and steps with a `PlaintextKey`, at the cost of
plain additions, so whole trainings can be simulated in exact integers. `CheckedPrivateKey` does both side by side and
compares every decrypted message.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

KEY_BITS = 2_048
LEAST_KEY_BITS = 256
"""Small keys are for fast tests; nothing below 2,048 bits keeps a secret."""


@dataclass(frozen=True)
class PublicKey:
    """The server's key, n: enough to encrypt, add and multiply."""

    n: mpz
    square: mpz = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "square", self.n * self.n)

    @property
    def bits(self) -> int:
        """The length of n in bits."""
        return int(self.n.bit_length())

    def encrypt(self, message: int) -> mpz:
        """Return a fresh ciphertext of message mod n."""
        return self.blinded(message, gmpy2.powmod(self._random(), self.n, self.square))

    def add(self, first: mpz, second: mpz) -> mpz:
        """Return a ciphertext of the sum of both messages."""
        return first * second % self.square

    def times(self, cipher: mpz, factor: int) -> mpz:
        """Return a ciphertext of the message times factor, an integer of either sign."""
        return gmpy2.powmod(cipher, factor, self.square)

    def nothing(self) -> mpz:
        """Return a ciphertext of 0 without randomness, as the start of a sum."""
        return mpz(1)

    def blinded(self, message: int, blinding: mpz) -> mpz:
        """Return (1 + n)^message times an n-th power mod n^2; that power must be random."""
        return (1 + (message % self.n) * self.n) % self.square * blinding % self.square

    def _random(self) -> mpz:
        while True:
            found = mpz(secrets.randbelow(int(self.n) - 1) + 1)
            if gmpy2.gcd(found, self.n) == 1:
                return found


@dataclass(frozen=True)
class PrivateKey:
    """p and q, held by clients. Work mod p^2 and q^2 separately is several times faster than mod n^2."""

    p: mpz = field(repr=False)
    q: mpz = field(repr=False)
    public: PublicKey = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "public", PublicKey(self.p * self.q))

    @classmethod
    def generate(cls, bits: int = KEY_BITS) -> PrivateKey:
        """Return a fresh key; n has exactly this many bits.

        Raises ValueError for too few bits or an odd number.
        """
        if bits < LEAST_KEY_BITS or bits % 2:
            raise ValueError(f"bits: even and at least {LEAST_KEY_BITS}, got {bits}")
        while True:
            p, q = _prime(bits // 2), _prime(bits // 2)
            # Paillier needs gcd(n, (p - 1) (q - 1)) = 1, which primes of one length have, being distinct.
            if p != q and (p * q).bit_length() == bits:
                return cls(p, q)

    def encrypt(self, message: int) -> mpz:
        """Encrypt with the same distribution as `PublicKey.encrypt`, several times faster.

        r^n mod p^2 is the p-th power of a random number mod p, and the two halves are independent.
        """
        parts = []
        for prime in (self.p, self.q):
            drawn = secrets.randbelow(int(prime) - 1) + 1
            parts.append(gmpy2.powmod(mpz(drawn), prime, prime * prime))
        return self.public.blinded(message, self._joined(*parts))

    def decrypt(self, cipher: mpz) -> int:
        """Return the message, from -n/2 to n/2.

        Raises ValueError for what can't be a ciphertext of this key.
        """
        if not 0 < cipher < self.public.square:
            raise ValueError("cipher: between 0 and n^2")
        parts = []
        for prime, other in ((self.p, self.q), (self.q, self.p)):
            square = prime * prime
            found = (gmpy2.powmod(cipher % square, prime - 1, square) - 1) // prime
            # (1 + n)^m to the power p - 1 is 1 + m n (p - 1) mod p^2, so this factor is q (p - 1) = -q mod p.
            parts.append(found * gmpy2.invert(-other % prime, prime) % prime)
        message = (parts[0] + self.p * ((parts[1] - parts[0]) * gmpy2.invert(self.p, self.q) % self.q)) % self.public.n
        return int(message if 2 * message < self.public.n else message - self.public.n)

    def _joined(self, at_p: mpz, at_q: mpz) -> mpz:
        first, second = self.p * self.p, self.q * self.q
        return at_p + first * ((at_q - at_p) * gmpy2.invert(first, second) % second)


def _prime(bits: int) -> mpz:
    """Return a prime with its two highest bits set, so that the product of two has twice the bits; error below
    2^-100.
    """
    while True:
        found = mpz(secrets.randbits(bits) | 3 << (bits - 2) | 1)
        if gmpy2.is_prime(found, 50):
            return found


class Encryptor(Protocol):
    def encrypt(self, message: int) -> Any:
        """Return a fresh ciphertext."""


class Evaluator(Protocol):
    """The operations of a server on ciphertexts that it can't read."""

    def add(self, first: Any, second: Any) -> Any:
        """Return a ciphertext of the sum of both messages."""

    def times(self, cipher: Any, factor: int) -> Any:
        """Return a ciphertext of the message times factor, an integer of either sign."""

    def nothing(self) -> Any:
        """Return a ciphertext of 0, as the start of a sum."""


class Decryptor(Encryptor, Protocol):
    """A private key, which decrypts."""

    @property
    def public(self) -> Evaluator:
        """The half of the key that the server computes with."""

    def decrypt(self, cipher: Any) -> int:
        """Return the message of a ciphertext."""


class CapacityExceeded(ValueError):
    """The next operation could overflow a slot; the message gives the number of bits it would need."""


@dataclass(frozen=True)
class Packing:
    """w bits a slot, f fraction bits of an encoded number, and the key's size.

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
        """Numbers in a ciphertext. Two bits of the key are reserved: for the sign, and because n is no power of two."""
        return (self.key_bits - 2) // self.slot_bits

    @property
    def step(self) -> float:
        """The encoding step: numbers are rounded to its nearest multiple."""
        return 2.0**-self.fraction_bits

    def ciphers(self, length: int) -> int:
        """The number of ciphertexts for a vector of this length."""
        return -(-length // self.slots)

    def pack(self, integers: Sequence[int]) -> int:
        """Pack at most `slots` integers into one message."""
        message = 0
        for place in range(len(integers) - 1, -1, -1):
            message = (message << self.slot_bits) + integers[place]
        return message

    def unpack(self, message: int, count: int) -> list[int]:
        """Return the numbers given to `pack`, or their sum. Raises ValueError if a slot overflowed."""
        half, whole = 1 << (self.slot_bits - 1), 1 << self.slot_bits
        found = []
        for _ in range(count):
            slot = (message + half) % whole - half
            found.append(slot)
            message = (message - slot) >> self.slot_bits
        if message:
            raise ValueError("message: does not fit its slots")
        return found


@dataclass(frozen=True)
class Encrypted:
    """A vector under encryption: value = slot / denominator.

    Args:
        ciphers: ciphertexts of `packing.slots` numbers each.
        length: the vector's length.
        denominator: divisor of decrypted integers; public.
        bound: public bound of the integers in slots; must stay below 2^(w-1).
    """

    ciphers: tuple[Any, ...]
    length: int
    denominator: int
    bound: int
    packing: Packing

    def __post_init__(self) -> None:
        if self.bound >= 1 << (self.packing.slot_bits - 1):
            raise CapacityExceeded(
                f"{self.bound.bit_length() + 1} bits a slot, only {self.packing.slot_bits} are available: "
                "encrypt it again"
            )

    @property
    def size_bytes(self) -> int:
        """The size of the transferred vector."""
        return len(self.ciphers) * ((2 * self.packing.key_bits + 7) // 8)


def encrypt(
    values: NDArray[np.floating[Any]], key: Encryptor, packing: Packing, *, bound: float, weight: int = 1
) -> Encrypted:
    """Encrypt weight * values, each rounded to a multiple of the encoding step.

    bound: of |values|; public, and the same for every client. Raises ValueError for a value that exceeds it or is not
    finite.
    """
    vector = np.asarray(values, dtype=np.float64).reshape(-1)
    if not np.isfinite(vector).all() or (len(vector) and np.abs(vector).max() > bound):
        raise ValueError(f"values: must be finite and within {bound}")
    scale = 1 << packing.fraction_bits
    integers = [weight * int(each) for each in np.rint(vector * scale)]
    starts = range(0, len(integers), packing.slots)
    ciphers = tuple(key.encrypt(packing.pack(integers[start : start + packing.slots])) for start in starts)
    return Encrypted(ciphers, len(integers), scale, weight * (int(bound * scale) + 1), packing)


def decrypt(found: Encrypted, key: Decryptor) -> NDArray[np.float64]:
    """Return the values, rounded to float64 once."""
    integers: list[int] = []
    for start, cipher in zip(range(0, found.length, found.packing.slots), found.ciphers, strict=True):
        integers += found.packing.unpack(key.decrypt(cipher), min(found.packing.slots, found.length - start))
    return np.array([each / found.denominator for each in integers], dtype=np.float64)


def weighted_sum(terms: Sequence[tuple[Fraction | int, Encrypted]], key: Evaluator) -> Encrypted:
    """Return sum_i factor_i x_i, without the private key: factors become integers over the least common denominator.

    Raises ValueError without terms or for vectors with different lengths or packings, and CapacityExceeded.
    """
    if not terms:
        raise ValueError("terms: at least one")
    first = terms[0][1]
    if any(each.length != first.length or each.packing != first.packing for _, each in terms):
        raise ValueError("terms: must have the same length and packing")
    parts = [(Fraction(factor) / each.denominator, each) for factor, each in terms]
    denominator = int(np.lcm.reduce([part.denominator for part, _ in parts], dtype=object))
    integers = [(int(part * denominator), each) for part, each in parts]
    bound = sum(abs(factor) * each.bound for factor, each in integers)
    # Check before the work rather than after it.
    Encrypted((), 0, 1, bound, first.packing)
    ciphers = [key.nothing()] * len(first.ciphers)
    for factor, each in integers:
        for place, cipher in enumerate(each.ciphers):
            ciphers[place] = key.add(ciphers[place], cipher if factor == 1 else key.times(cipher, factor))
    return Encrypted(tuple(ciphers), first.length, denominator, bound, first.packing)


class ResultDiffers(AssertionError):
    """A decrypted message differs from the result of the same steps without encryption."""


@dataclass(frozen=True)
class PlaintextKey:
    """Both halves of a key that hides nothing. Formal guarantees: none; for simulations only."""

    @property
    def public(self) -> PlaintextKey:
        return self

    def encrypt(self, message: int) -> mpz:
        """Return the message itself, in place of a ciphertext."""
        return mpz(message)

    def decrypt(self, cipher: mpz) -> int:
        return int(cipher)

    def add(self, first: mpz, second: mpz) -> mpz:
        return first + second

    def times(self, cipher: mpz, factor: int) -> mpz:
        return cipher * factor

    def nothing(self) -> mpz:
        return mpz(0)


Pair = tuple[mpz, mpz]
"""A ciphertext, and its plaintext message."""


@dataclass(frozen=True)
class CheckedPublicKey:
    """The server's half: does every step on both the ciphertext and its message."""

    real: PublicKey

    def add(self, first: Pair, second: Pair) -> Pair:
        return self.real.add(first[0], second[0]), first[1] + second[1]

    def times(self, cipher: Pair, factor: int) -> Pair:
        return self.real.times(cipher[0], factor), cipher[1] * factor

    def nothing(self) -> Pair:
        return self.real.nothing(), mpz(0)


@dataclass(frozen=True)
class CheckedPrivateKey:
    """The clients' half: decrypts a ciphertext and compares the result with its stored message."""

    real: PrivateKey

    @property
    def public(self) -> CheckedPublicKey:
        return CheckedPublicKey(self.real.public)

    def encrypt(self, message: int) -> Any:
        """Return a new ciphertext with its message."""
        return self.real.encrypt(message), mpz(message)

    def decrypt(self, cipher: Any) -> int:
        """Return the message. Raises ResultDiffers if the ciphertext decrypts to another."""
        opened, kept = self.real.decrypt(cipher[0]), int(cipher[1])
        if opened != kept:
            raise ResultDiffers(f"a ciphertext decrypted to {opened}, but the same steps in plaintext give {kept}")
        return opened
