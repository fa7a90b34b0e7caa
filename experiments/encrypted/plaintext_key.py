"""Paillier's arithmetic with nothing hidden: what a message comes to, at the price of an addition.

FINDING-HE goes through the same encoding, packing and steps with these keys as with real ones, so whole trainings can
be simulated in exact integers. `CheckedPrivateKey` does both side by side and holds every opened ciphertext to its
message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gmpy2 import mpz

from experiments.encrypted.paillier import PrivateKey, PublicKey


class NotTheSame(AssertionError):
    """A ciphertext opened to something else than the same steps in clear."""


@dataclass(frozen=True)
class PlaintextKey:
    """Both halves of a key that hides nothing. Formal guarantees: none; for simulations only."""

    @property
    def public(self) -> PlaintextKey:
        return self

    def encrypt(self, message: int) -> mpz:
        """The message itself, in place of a ciphertext."""
        return mpz(message)

    def decrypt(self, cipher: mpz) -> int:
        """The message itself."""
        return int(cipher)

    def add(self, first: mpz, second: mpz) -> mpz:
        """The sum of both messages."""
        return first + second

    def times(self, cipher: mpz, factor: int) -> mpz:
        """The message times factor."""
        return cipher * factor

    def nothing(self) -> mpz:
        """0, to begin a sum with."""
        return mpz(0)


Pair = tuple[mpz, mpz]
"""A ciphertext, and its message in clear."""


@dataclass(frozen=True)
class CheckedPublicKey:
    """The server's half: every step on the ciphertext, and on the message beside it."""

    real: PublicKey

    def add(self, first: Pair, second: Pair) -> Pair:
        """Both sums: of the ciphertexts, and of the messages."""
        return self.real.add(first[0], second[0]), first[1] + second[1]

    def times(self, cipher: Pair, factor: int) -> Pair:
        """Both products with factor: of the ciphertext, and of the message."""
        return self.real.times(cipher[0], factor), cipher[1] * factor

    def nothing(self) -> Pair:
        """A ciphertext of 0, and 0."""
        return self.real.nothing(), mpz(0)


@dataclass(frozen=True)
class CheckedPrivateKey:
    """The clients' half: opens a ciphertext and compares it with the message beside it."""

    real: PrivateKey

    @property
    def public(self) -> CheckedPublicKey:
        return CheckedPublicKey(self.real.public)

    def encrypt(self, message: int) -> Any:
        """A fresh ciphertext beside its message."""
        return self.real.encrypt(message), mpz(message)

    def decrypt(self, cipher: Any) -> int:
        """The message. Raises NotTheSame where the ciphertext opens to another."""
        opened, kept = self.real.decrypt(cipher[0]), int(cipher[1])
        if opened != kept:
            raise NotTheSame(f"a ciphertext opened to {opened}, and the same steps in clear come to {kept}")
        return opened
