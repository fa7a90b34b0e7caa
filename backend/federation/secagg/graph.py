"""Who masks with whom: everybody with everybody, or the sparse graph of Bell et al. 2020 with its threshold.

The sparse graph is a Harary graph (a circle on which each member is joined to the k/2 next on either side) over a
random permutation. With a share gamma of the members colluding and a share delta dropping out, three things must hold:

    E1  no honest member has t or more colluding neighbours          else they could open its masks
    E2  the honest survivors hang together                           else a part of the sum could be opened
    E3  every member has at least t surviving neighbours             else the sum can't be opened at all

E1 and E2 each fail with probability at most 2^-sigma, E3 with at most 2^-eta. E1 and E3 are tails of hypergeometric
laws and a union over the members, as in the paper. For E2 we bound pairs of gaps of k/2 removed members in a row, since
to cut a circle takes two; one gap alone would give a weaker figure, and E1 is the harder one anyway.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import hypergeom

from device_app.wire.secagg import SPARSE_FROM

_NUMBER = np.dtype("<u2")


@dataclass(frozen=True)
class Assumptions:
    """What the sparse form is proof against.

    Args:
        colluding: gamma, the share of members that may work together with the server.
        dropping: delta, the share of members that may vanish at any stage.
        privacy_bits: sigma.
        success_bits: eta.
    """

    colluding: float = 0.1
    dropping: float = 0.2
    privacy_bits: float = 40.0
    success_bits: float = 20.0

    def __post_init__(self) -> None:
        if min(self.colluding, self.dropping) < 0 or self.colluding + self.dropping >= 1:
            raise ValueError(
                f"colluding + dropping: shares that stay below 1, got {self.colluding} and {self.dropping}"
            )


@dataclass(frozen=True)
class Neighbourhood:
    """k neighbours each, t shares to open a secret, and the bounds in bits (log2 of each probability of failure)."""

    degree: int
    threshold: int
    opened_by_colluders: float
    cut_in_parts: float
    not_opened: float


def choose_neighbourhood(members: int, assumptions: Assumptions | None = None) -> Neighbourhood | None:
    """The smallest even k, with its t, that meets the assumptions; None if only the complete graph does, or is due.

    t is more than a third of a member's closed neighbourhood, which is what devices insist on.
    """
    assumed = assumptions or Assumptions()
    if members < SPARSE_FROM:
        return None
    for degree in range(2, members - 1, 2):
        found = _bounds(members, degree, assumed)
        if (
            found is not None
            and found.cut_in_parts <= -assumed.privacy_bits
            and found.not_opened <= -assumed.success_bits
        ):
            return found
    return None


def random_circle(members: int, draw: Callable[[int], int] = secrets.randbelow) -> tuple[int, ...]:
    """The members 1 to n in random order (Fisher and Yates), from the system's cryptographic generator."""
    order = list(range(1, members + 1))
    for last in range(members - 1, 0, -1):
        other = draw(last + 1)
        order[last], order[other] = order[other], order[last]
    return tuple(order)


@dataclass(frozen=True)
class MaskGraph:
    """Who masks with whom.

    Args:
        members: n; they are numbered from 1.
        degree: k; n - 1 and more is the complete graph.
        circle: the members in their order on it, two bytes each, little-endian; not read for the complete graph.
    """

    members: int
    degree: int
    circle: bytes = b""

    @classmethod
    def sparse(cls, circle: Sequence[int], degree: int) -> MaskGraph:
        """The Harary graph on a circle."""
        return cls(len(circle), degree, np.array(circle, dtype=_NUMBER).tobytes())

    def closed(self, member: int) -> tuple[int, ...]:
        """A member and its neighbours, ascending. The work is that of k numbers, and a look over the circle's bytes."""
        if self.degree >= self.members - 1:
            return tuple(range(1, self.members + 1))
        circle = np.frombuffer(self.circle, dtype=_NUMBER)
        place = int(np.flatnonzero(circle == member)[0])
        reach = np.arange(place - self.degree // 2, place + self.degree // 2 + 1)
        return tuple(np.sort(circle.take(reach, mode="wrap")).tolist())

    def fewest(self, chosen: Collection[int]) -> int:
        """The smallest number of chosen ones that any closed neighbourhood holds."""
        if self.degree >= self.members - 1:
            return len(chosen)
        circle = np.frombuffer(self.circle, dtype=_NUMBER)
        hits = np.isin(circle, np.fromiter(chosen, dtype=_NUMBER))
        width = self.degree + 1
        around = np.concatenate(([0], np.cumsum(np.concatenate((hits, hits[: width - 1])))))
        return int((around[width:] - around[:-width]).min())


def _bounds(members: int, degree: int, assumed: Assumptions) -> Neighbourhood | None:
    colluding = math.ceil(assumed.colluding * members)
    surviving = members - math.ceil(assumed.dropping * members)
    removed = colluding + members - surviving
    others = members - 1
    for threshold in range(max(2, (degree + 1) // 3 + 1), degree + 1):
        e1 = _bits(members * float(hypergeom.sf(threshold - 1, others, colluding, degree)))
        if e1 <= -assumed.privacy_bits:
            e3 = _bits(members * float(hypergeom.cdf(threshold - 1, others, surviving - 1, degree)))
            return Neighbourhood(degree, threshold, e1, _two_gaps(members, removed, degree), e3)
    return None


def _two_gaps(members: int, removed: int, degree: int) -> float:
    """log2 of n^2 / 2 times the chance that k given members are all removed: two gaps of k/2 on the circle."""
    if removed < degree:
        return -math.inf
    gaps = sum(math.log2((removed - i) / (members - i)) for i in range(degree))
    return 2 * math.log2(members) - 1 + gaps


def _bits(probability: float) -> float:
    return math.log2(probability) if probability > 0 else -math.inf
