"""Reconstruct a Shamir secret from partly false shares, by Reed-Solomon decoding.

Source: Gao 2003, "A new algorithm for decoding Reed-Solomon codes". A polynomial is the list of its coefficients,
lowest first, without trailing zeros.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.shamir import PRIME

Coefficients = list[int]


@dataclass(frozen=True)
class Decoded:
    """The secret of the polynomial that most shares lie on, and the holders of those shares."""

    secret: int
    agreeing: frozenset[int]


def tolerated(shares: int, threshold: int) -> int:
    """Return how many of this many shares may be false while the true polynomial is still unique."""
    return max(0, (shares - threshold) // 2)


def decode(shares: Mapping[int, int], threshold: int, prime: int = PRIME) -> Decoded | None:
    """Return the polynomial on which all but `tolerated` shares lie, or None.

    Its degree is below `threshold`.

    shares: values by holder; holders are distinct and in 1 .. prime - 1. The time is quadratic in their number.

    There is at most one such polynomial: two would agree on len(shares) - 2 tolerated >= threshold points.
    """
    points = list(shares)
    above, below = _vanishing(points, prime), _interpolated(shares, prime)
    before: Coefficients = []
    factor: Coefficients = [1]
    while 2 * (len(below) - 1) >= len(points) + threshold:
        quotient, rest = _divided(above, below, prime)
        above, below = below, rest
        before, factor = factor, _minus(before, _times(quotient, factor, prime), prime)
    found, rest = _divided(below, factor, prime)
    if rest or len(found) > threshold:
        return None
    agreeing = frozenset(point for point in points if _value(found, point, prime) == shares[point] % prime)
    if len(agreeing) < len(points) - tolerated(len(points), threshold):
        return None
    return Decoded(found[0] if found else 0, agreeing)


def _vanishing(points: list[int], prime: int) -> Coefficients:
    product = [1]
    for point in points:
        product = _times(product, [-point % prime, 1], prime)
    return product


def _interpolated(shares: Mapping[int, int], prime: int) -> Coefficients:
    """Return the interpolating polynomial, computed in Newton's form and expanded."""
    total: Coefficients = []
    basis: Coefficients = [1]
    for point, value in shares.items():
        step = (value - _value(total, point, prime)) * pow(_value(basis, point, prime), -1, prime) % prime
        total = _minus(total, [-step * each % prime for each in basis], prime)
        basis = _times(basis, [-point % prime, 1], prime)
    return total


def _value(polynomial: Coefficients, point: int, prime: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * point + coefficient) % prime
    return value


def _times(one: Coefficients, other: Coefficients, prime: int) -> Coefficients:
    if not one or not other:
        return []
    product = [0] * (len(one) + len(other) - 1)
    for place, left in enumerate(one):
        for shift, right in enumerate(other):
            product[place + shift] += left * right
    return _trimmed([each % prime for each in product])


def _minus(one: Coefficients, other: Coefficients, prime: int) -> Coefficients:
    length = max(len(one), len(other))
    padded, taken = one + [0] * (length - len(one)), other + [0] * (length - len(other))
    return _trimmed([(left - right) % prime for left, right in zip(padded, taken, strict=True)])


def _divided(one: Coefficients, by: Coefficients, prime: int) -> tuple[Coefficients, Coefficients]:
    """Return quotient and remainder; `by` is not zero."""
    rest, quotient = list(one), [0] * max(0, len(one) - len(by) + 1)
    lead = pow(by[-1], -1, prime)
    for place in reversed(range(len(quotient))):
        factor = rest[place + len(by) - 1] * lead % prime
        quotient[place] = factor
        for shift, coefficient in enumerate(by):
            rest[place + shift] = (rest[place + shift] - factor * coefficient) % prime
    return _trimmed(quotient), _trimmed(rest)


def _trimmed(polynomial: Coefficients) -> Coefficients:
    while polynomial and not polynomial[-1]:
        polynomial.pop()
    return polynomial
