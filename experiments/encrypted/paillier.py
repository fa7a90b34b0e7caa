"""Paillier's cryptosystem (1999): sums and integer multiples of what was encrypted, by who can't read it.

n = p q, E(m) = (1 + n)^m r^n mod n^2 for a random r; the product of ciphertexts encrypts the sum of their messages, and
the power k the k-fold. Big numbers are GMP's (gmpy2); primes and r come from the operating system's randomness.

Formal guarantees: ciphertexts hide messages of one length from who lacks the private key, if deciding n-th residues
mod n^2 is hard for keys of this size (2,048 bits: about 112 bits of security, 3,072: 128). Anyone can change a
ciphertext's message, and nothing here says who made one. gmpy2's powers do not run in constant time: keep the private
key where nobody can measure. A laboratory's implementation, read by nobody but us.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import gmpy2
from gmpy2 import mpz

KEY_BITS = 2_048
LEAST_KEY_BITS = 256
"""Toys of a second's tests; nothing below 2,048 bits keeps a secret."""


@dataclass(frozen=True)
class PublicKey:
    """What a server holds: n, enough to encrypt, add and multiply."""

    n: mpz
    square: mpz = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "square", self.n * self.n)

    @property
    def bits(self) -> int:
        """The length of n in bits."""
        return int(self.n.bit_length())

    def encrypt(self, message: int) -> mpz:
        """A fresh ciphertext of message mod n."""
        return self.blinded(message, gmpy2.powmod(self._random(), self.n, self.square))

    def add(self, first: mpz, second: mpz) -> mpz:
        """A ciphertext of the sum of both messages."""
        return first * second % self.square

    def times(self, cipher: mpz, factor: int) -> mpz:
        """A ciphertext of the message times factor, an integer of either sign."""
        return gmpy2.powmod(cipher, factor, self.square)

    def nothing(self) -> mpz:
        """A ciphertext of 0 that hides nothing, to begin a sum with."""
        return mpz(1)

    def blinded(self, message: int, blinding: mpz) -> mpz:
        """(1 + n)^message times an n-th power mod n^2, which has to be a random one."""
        return (1 + (message % self.n) * self.n) % self.square * blinding % self.square

    def _random(self) -> mpz:
        while True:
            found = mpz(secrets.randbelow(int(self.n) - 1) + 1)
            if gmpy2.gcd(found, self.n) == 1:
                return found


@dataclass(frozen=True)
class PrivateKey:
    """p and q, what clients hold. Work mod p^2 and q^2 apart is several times faster than mod n^2."""

    p: mpz = field(repr=False)
    q: mpz = field(repr=False)
    public: PublicKey = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "public", PublicKey(self.p * self.q))

    @classmethod
    def generate(cls, bits: int = KEY_BITS) -> PrivateKey:
        """A fresh key; n has exactly that many bits. Raises ValueError for an odd number of bits, or too few."""
        if bits < LEAST_KEY_BITS or bits % 2:
            raise ValueError(f"bits: even and at least {LEAST_KEY_BITS}, got {bits}")
        while True:
            p, q = _prime(bits // 2), _prime(bits // 2)
            # Paillier needs gcd(n, (p - 1) (q - 1)) = 1, which primes of one length have, being distinct.
            if p != q and (p * q).bit_length() == bits:
                return cls(p, q)

    def encrypt(self, message: int) -> mpz:
        """As `PublicKey.encrypt`, of the same distribution and several times faster: r^n mod p^2 is the p-th power of a
        random number mod p, and the two halves are independent."""
        parts = []
        for prime in (self.p, self.q):
            drawn = secrets.randbelow(int(prime) - 1) + 1
            parts.append(gmpy2.powmod(mpz(drawn), prime, prime * prime))
        return self.public.blinded(message, self._joined(*parts))

    def decrypt(self, cipher: mpz) -> int:
        """The message, from -n/2 to n/2. Raises ValueError for what no ciphertext of this key can be."""
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
    """With its two highest bits set, so that the product of two has twice the bits; an error is below 2^-100."""
    while True:
        found = mpz(secrets.randbits(bits) | 3 << (bits - 2) | 1)
        if gmpy2.is_prime(found, 50):
            return found
