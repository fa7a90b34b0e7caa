"""Shamir's secret sharing over a prime field a little larger than 32 bytes (Shamir 1979)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

PRIME = 2**256 + 297
"""The smallest prime above 2^256, so that every 32-byte string is a field element."""
SECRET_BYTES = 32
SHARE_BYTES = 33


class SharingError(ValueError):
    """Shares can't be created or combined; the message names the number and the limit."""


def split(
    secret: int,
    threshold: int,
    points: Sequence[int],
    prime: int = PRIME,
    draw: Callable[[int], int] = secrets.randbelow,
) -> dict[int, int]:
    """Return one share for each point: f(point) for a random polynomial f with f(0) = secret.

    Its degree is threshold - 1.

    Raises SharingError unless 1 <= threshold <= number of points, and the points are distinct and in 1 .. prime - 1.

    Formal guarantees: any `threshold` shares give the secret; fewer are statistically independent of it, as long as
    `draw(p)` is uniform on 0 .. p - 1 (the default draws from the system's cryptographic generator).
    """
    _check_points(points, prime)
    if not 1 <= threshold <= len(points):
        raise SharingError(f"threshold: 1 to the {len(points)} holders, got {threshold}")
    if not 0 <= secret < prime:
        raise SharingError("secret: must be a field element")
    falling = [*(draw(prime) for _ in range(threshold - 1)), secret]
    shares = {}
    for point in points:
        value = 0
        # Points are small: reducing once at the end is faster than at every step.
        for coefficient in falling:
            value = value * point + coefficient
        shares[point] = value % prime
    return shares


@dataclass(frozen=True)
class LagrangeBasis:
    """The weights that combine the shares at some points into f(0).

    The same basis works for all secrets of one set of holders.
    """

    weights: Mapping[int, int]
    prime: int = PRIME

    @classmethod
    def at(cls, points: Sequence[int], prime: int = PRIME) -> LagrangeBasis:
        """Return the basis for exactly these points.

        Raises SharingError if they aren't distinct and in 1 .. prime - 1.
        """
        _check_points(points, prime)
        product = math.prod(points) % prime
        below = [one * math.prod(other - one for other in points if other != one) % prime for one in points]
        weights = (product * inverse % prime for inverse in _inverses(below, prime))
        return cls(dict(zip(points, weights, strict=True)), prime)

    def join(self, shares: Mapping[int, int]) -> int:
        """Return the secret, from the shares at this basis's points.

        Raises SharingError if one is missing.
        """
        if missing := sorted(self.weights.keys() - shares.keys()):
            raise SharingError(f"share {missing[0]}: missing")
        return sum(weight * shares[point] for point, weight in self.weights.items()) % self.prime


def join(shares: Mapping[int, int], prime: int = PRIME) -> int:
    """Return the secret, from exactly as many shares as the threshold.

    For many secrets of the same holders, reuse a LagrangeBasis.
    """
    return LagrangeBasis.at(list(shares), prime).join(shares)


def split_bytes(secret: bytes, threshold: int, points: Sequence[int]) -> dict[int, bytes]:
    """Return the shares of a 32-byte secret, 33 bytes each."""
    if len(secret) != SECRET_BYTES:
        raise SharingError(f"secret: {SECRET_BYTES} bytes, got {len(secret)}")
    shares = split(int.from_bytes(secret, "big"), threshold, points)
    return {point: share.to_bytes(SHARE_BYTES, "big") for point, share in shares.items()}


def join_bytes(basis: LagrangeBasis, shares: Mapping[int, bytes]) -> bytes | None:
    """Return the 32-byte secret, or None if some of the shares are false."""
    joined = basis.join({point: int.from_bytes(share, "big") for point, share in shares.items()})
    return None if joined >> (8 * SECRET_BYTES) else joined.to_bytes(SECRET_BYTES, "big")


def _inverses(values: Sequence[int], prime: int) -> list[int]:
    """Return the inverses of nonzero values, with one inversion of their product (Montgomery)."""
    before = list(accumulate(values, lambda product, value: product * value % prime, initial=1))
    left, found = pow(before[-1], -1, prime), []
    for product, value in zip(before[-2::-1], reversed(values), strict=True):
        found.append(left * product % prime)
        left = left * value % prime
    return found[::-1]


def _check_points(points: Sequence[int], prime: int) -> None:
    if len(set(points)) != len(points):
        raise SharingError("points: must be distinct")
    for point in points:
        if not 1 <= point < prime:
            raise SharingError(f"points: 1 to {prime - 1 if prime < 1_000 else 'the prime'}, got {point}")
