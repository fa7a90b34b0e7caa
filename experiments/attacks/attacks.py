"""Attacks by malicious devices: what they add to their masked vectors.

Nobody can check a single masked vector, so an attack is anything that passes the checks of the sum. An attacker knows
everything public: the weights, the clip, the noise, the number of participants, the server's limits. It also gets the
round's honest gradient, which it could estimate from readers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from backend.federation.protections.sum_bounds import alike_deviations, noise_deviation, noise_length, noise_reach
from protocol.protections import SecureSum

Vector = NDArray[np.float64]
LENGTH_FACTOR: Final = 0.9
"""Share of the longest allowed length that attack vectors have, so that noise seldom gets them refused."""
NOISE_ROOM: Final = 3.0
"""Standard deviations of noise that each number leaves free below its bound."""


@dataclass(frozen=True)
class Known:
    """What an attacker knows.

    Args:
        weights: the model [d], laid out as an update.
        honest: the mean gradient [d] of the honest devices.
        features: which of the d are feature weights.
        protection: the sum's protection.
        survivors: number in the sum that the attack goes into.
        malicious: number of malicious devices that act together.
        groups: number of sums that the cohort is split into.
        alone: whether no other group has malicious devices; otherwise the sums must not be too alike.
    """

    weights: Vector
    honest: Vector
    features: NDArray[np.bool_]
    protection: SecureSum
    survivors: int
    malicious: int
    groups: int = 1
    alone: bool = True

    def longest(self, direction: Vector) -> Vector:
        """Return an attack vector in this direction, just short enough to pass the checks more often than not.

        The length leaves room below the norm's bound and the bound of one number for noise of its usual length. It also
        keeps groups with the same attack below the similarity limit.
        """
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
        """The longest attack that another group of this size can share, at the limit of `too_alike`.

        With x the length of each sum, x^2 = L^2 + s^2 d and L^2 = g^2 + z s (g + x).
        """
        reach = alike_deviations(self.groups) * deviation
        rest = given**2 + reach * given + deviation**2 * d
        length = (reach + np.sqrt(reach**2 + 4 * rest)) / 2
        return float(np.sqrt(length**2 - deviation**2 * d))


def sign_flip(known: Known) -> Vector:
    """Each malicious device sends the honest direction with the opposite sign, at the full clip: undetectable."""
    return -known.malicious * known.protection.clip * _unit(known.honest)


def boosted(known: Known) -> Vector:
    """The same attack, as long as the bound allows."""
    return -known.longest(known.honest)


def turned_features(known: Known) -> Vector:
    """Towards feature weights of the opposite sign, as long as the bound allows.

    A step goes against the gradient.
    """
    return known.longest(np.where(known.features, known.weights, 0.0))


def shrunk(known: Known) -> Vector:
    """Towards a model of zeros, as long as the bound allows."""
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
    """A cohort split into groups, its malicious members, and each group's own noise stream.

    lying: the places of malicious members; a smaller set is contained in a larger one.
    """

    def __init__(self, cohort: int, groups: int, malicious: int, seed: tuple[int, ...]) -> None:
        rng = np.random.default_rng((*seed, groups))
        self.groups, self._seed = groups, seed
        self._places = [each.tolist() for each in np.array_split(rng.permutation(cohort), groups)]
        self.lying: frozenset[int] = frozenset(
            np.random.default_rng((*seed, 0, 1)).permutation(cohort)[:malicious].tolist()
        )

    @property
    def lying_groups(self) -> int:
        """The number of groups with a malicious member."""
        return sum(bool(self.lying.intersection(places)) for places in self._places)

    def __iter__(self) -> Iterator[tuple[list[int], int, np.random.Generator]]:
        """Yield the places of each group, how many are malicious, and its noise source."""
        for at, places in enumerate(self._places):
            rng = np.random.default_rng((*self._seed, self.groups, at))
            yield places, len(self.lying.intersection(places)), rng


def _unit(vector: Vector) -> Vector:
    return vector / max(float(np.linalg.norm(vector)), 1e-30)
