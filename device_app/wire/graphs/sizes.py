"""Sizes of tensors whose axes are free: whole numbers, or polynomials in the names of axes, with their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

from device_app.wire.graphs.message import GraphRefused

TERMS_LIMIT = 12
TERMS_OF_A_SUM_LIMIT = 256
DEGREE_LIMIT = 6
NUMBER_LIMIT = 2**62

Monomial = tuple[str, ...]
Bounds = Mapping[str, tuple[int, int]]
"""By the name of an axis: its least and its greatest size, neither below 0."""


class Polynomial:
    """Sums of products of free axes; arithmetic gives a whole number where nothing free is left.

    Arithmetic raises GraphRefused for more than TERMS_LIMIT terms, DEGREE_LIMIT factors, or numbers beyond 2^62.
    """

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = terms

    @staticmethod
    def of(axis: str) -> Polynomial:
        """One axis."""
        return Polynomial({(axis,): 1})

    @cached_property
    def _key(self) -> frozenset[tuple[Monomial, int]]:
        return frozenset(self.terms.items())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Polynomial) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __add__(self, other: Size) -> Size:
        total = dict(self.terms)
        for monomial, number in _terms(other).items():
            total[monomial] = total.get(monomial, 0) + number
        return _made(total)

    __radd__ = __add__

    def __sub__(self, other: Size) -> Size:
        return self + other * -1

    def __rsub__(self, other: int) -> Size:
        return self * -1 + other

    def __mul__(self, other: Size) -> Size:
        product: dict[Monomial, int] = {}
        for one, number in self.terms.items():
            for another, factor in _terms(other).items():
                monomial = tuple(sorted(one + another))
                product[monomial] = product.get(monomial, 0) + number * factor
        return _made(product)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return " + ".join("*".join([str(number), *monomial]) for monomial, number in sorted(self.terms.items()))


Size = int | Polynomial


def _terms(size: Size) -> Mapping[Monomial, int]:
    return size.terms if isinstance(size, Polynomial) else {(): size}


def _made(terms: Mapping[Monomial, int], terms_limit: int = TERMS_LIMIT) -> Size:
    kept = {monomial: number for monomial, number in terms.items() if number}
    if not kept:
        return 0
    if len(kept) > terms_limit or max(map(len, kept)) > DEGREE_LIMIT:
        raise GraphRefused(f"a size has more than {terms_limit} terms or {DEGREE_LIMIT} factors")
    if max(map(abs, kept.values())) > NUMBER_LIMIT:
        raise GraphRefused("a size is beyond 2^62")
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Polynomial(kept)


@lru_cache(maxsize=4096)
def product(sizes: tuple[Size, ...]) -> Size:
    """All of them multiplied; 1 for none."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def total_of(weights: Mapping[Size, int]) -> Size:
    """The sum of sizes, each times its weight: of as many terms as there are kinds of tensors."""
    total: dict[Monomial, int] = {}
    for size, weight in weights.items():
        for monomial, number in _terms(size).items():
            total[monomial] = total.get(monomial, 0) + number * weight
    return _made(total, TERMS_OF_A_SUM_LIMIT)


def quotient(total: Size, part: Size) -> Size | None:
    """total / part, where part is one term that divides each of total's; else None."""
    terms = _terms(part)
    if len(terms) != 1:
        return 1 if total == part else None
    ((divisor, number),) = terms.items()
    if not number:
        return None
    found = {}
    for monomial, each in _terms(total).items():
        left = list(monomial)
        for axis in divisor:
            if axis not in left:
                return None
            left.remove(axis)
        if each % number:
            return None
        found[tuple(left)] = each // number
    return _made(found)


def bounds(size: Size, axes: Bounds) -> tuple[int, int]:
    """Between what and what it lies."""
    low = high = 0
    for monomial, number in _terms(size).items():
        least = most = number
        for axis in monomial:
            smallest, largest = axes[axis]
            least, most = least * smallest, most * largest
        low, high = low + min(least, most), high + max(least, most)
    return low, high
