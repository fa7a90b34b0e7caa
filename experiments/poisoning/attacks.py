"""What liars of a cohort add to their masked vectors: nobody checks one vector, so anything that passes for a sum.

An attacker knows all that is public: the weights, the clip, the noise, how many take part, the limits of the server. It
is also told the honest gradient of the round, which it could estimate from readers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from backend.federation.protections.sum_bounds import alike_deviations, noise_deviation, noise_length, noise_reach
from device_app.wire.protections import SecureSum

Vector = NDArray[np.float64]
LENGTH_FACTOR: Final = 0.9
"""A forged vector is so much of the longest that the bounds' formulas allow, so that noise seldom has it refused."""
NOISE_ROOM: Final = 3.0
"""Standard deviations of noise that each number leaves free below its bound."""


@dataclass(frozen=True)
class Known:
    """What an attacker goes by.

    Args:
        weights: the model [d], as an update is laid out.
        honest: the mean gradient [d] of the honest devices.
        features: which of the d are feature weights.
        protection: of the sum.
        survivors: in the sum that the lie goes into.
        liars: how many of them lie together.
        groups: how many sums the cohort was dealt into.
        alone: whether no other group has liars: else these must not be too alike.
    """

    weights: Vector
    honest: Vector
    features: NDArray[np.bool_]
    protection: SecureSum
    survivors: int
    liars: int
    groups: int = 1
    alone: bool = True

    def longest(self, direction: Vector) -> Vector:
        """A lie of that direction, so long that it passes more often than not: within what the norm's bound leaves
        beside noise of its usual length, what the bound of one number leaves beside noise, and what another group that
        is told the same may share with it."""
        deviation, d = noise_deviation(self.protection, self.survivors), len(self.weights)
        given, unit = self.survivors * self.protection.clip, _unit(direction)
        limit = given + noise_length(deviation, d)
        lengths = [float(np.sqrt(max(0.0, limit**2 - deviation**2 * d)))]
        number = given + noise_reach(deviation, d) - NOISE_ROOM * deviation
        lengths.append(number / max(float(np.abs(unit).max()), 1e-30))
        if not self.alone:
            lengths.append(self._alike(given, deviation, d))
        return LENGTH_FACTOR * min(lengths) * unit

    def _alike(self, given: float, deviation: float, d: int) -> float:
        """L of a lie that another group of that size is told as well, at the limit of `too_alike`: with x the length of
        each sum, x^2 = L^2 + s^2 d and L^2 = g^2 + z s (g + x)."""
        reach = alike_deviations(self.groups) * deviation
        rest = given**2 + reach * given + deviation**2 * d
        length = (reach + np.sqrt(reach**2 + 4 * rest)) / 2
        return float(np.sqrt(length**2 - deviation**2 * d))


def sign_flip(known: Known) -> Vector:
    """Each liar sends the honest direction with the other sign, at the full clip: what no check of any kind can see."""
    return -known.liars * known.protection.clip * _unit(known.honest)


def boosted(known: Known) -> Vector:
    """The same as long as the bound lets pass."""
    return -known.longest(known.honest)


def turned_features(known: Known) -> Vector:
    """Towards feature weights of the other sign, as long as the bound lets pass; a step goes against the gradient."""
    return known.longest(np.where(known.features, known.weights, 0.0))


def shrunk(known: Known) -> Vector:
    """Towards a model of zeros, as long as the bound lets pass."""
    return known.longest(known.weights)


def huge(known: Known) -> Vector:
    """1e4 in every number, where a ring of 32 bits with 16 of fraction ends at 2^15: refused; no round counts."""
    return np.full(len(known.weights), 1e4)


Attack = Callable[[Known], Vector]
ATTACKS: Final[Mapping[str, Attack]] = {
    "sign flip at the clip": sign_flip,
    "sign flip at the bound": boosted,
    "feature weights turned": turned_features,
    "weights to zero": shrunk,
    "1e4 in every number": huge,
}


class DrawnGroups:
    """A cohort dealt into groups, which of its places lie, and each group's own stream of noise.

    lying: the places; fewer liars are among those of more.
    """

    def __init__(self, cohort: int, groups: int, liars: int, seed: tuple[int, ...]) -> None:
        rng = np.random.default_rng((*seed, groups))
        self.groups, self._seed = groups, seed
        self._places = [each.tolist() for each in np.array_split(rng.permutation(cohort), groups)]
        self.lying: frozenset[int] = frozenset(
            np.random.default_rng((*seed, 0, 1)).permutation(cohort)[:liars].tolist()
        )

    @property
    def lying_groups(self) -> int:
        """In how many groups there is a liar."""
        return sum(bool(self.lying.intersection(places)) for places in self._places)

    def __iter__(self) -> Iterator[tuple[list[int], int, np.random.Generator]]:
        """Places of each group, how many of them lie, and where its noise comes from."""
        for at, places in enumerate(self._places):
            rng = np.random.default_rng((*self._seed, self.groups, at))
            yield places, len(self.lying.intersection(places)), rng


def _unit(vector: Vector) -> Vector:
    return vector / max(float(np.linalg.norm(vector)), 1e-30)
