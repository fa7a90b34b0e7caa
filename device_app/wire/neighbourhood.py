"""How many neighbours and shares the sparse form of a secure sum needs: figured alike by the server that draws the
graph and the device that insists on it (Bell et al. 2020).

With a share gamma of the members colluding and a share delta dropping out, three things must hold:

    E1  no honest member has t or more colluding neighbours          else they could open its masks
    E2  the honest survivors hang together                           else a part of the sum could be opened
    E3  every member has at least t surviving neighbours             else the sum can't be opened at all

E1 and E2 each fail with probability at most 2^-sigma, E3 with at most 2^-eta. E1 and E3 are tails of hypergeometric
distributions and a union over the members, as in the paper. For E2 we bound pairs of gaps of k/2 removed members in a
row, since to cut a circle takes two; one gap alone would give a weaker figure, and E1 is the harder one anyway.

All in whole numbers, so that no rounding can make the two ends disagree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from device_app.wire.secagg import SPARSE_FROM


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
    privacy_bits: int = 40
    success_bits: int = 20

    def __post_init__(self) -> None:
        if min(self.colluding, self.dropping) < 0 or self.colluding + self.dropping >= 1:
            raise ValueError(
                f"colluding + dropping: shares that stay below 1, got {self.colluding} and {self.dropping}"
            )


@dataclass(frozen=True)
class Neighbourhood:
    """k neighbours each, and t shares to open a secret."""

    degree: int
    threshold: int


USUAL = Assumptions()
"""What both ends assume."""


@lru_cache(maxsize=256)
def choose_neighbourhood(members: int, assumed: Assumptions = USUAL) -> Neighbourhood | None:
    """The smallest even k, with its t, that meets the assumptions; None if only the complete graph does, or is due.

    t is more than a third of a member's closed neighbourhood.
    """
    if members < SPARSE_FROM:
        return None
    for degree in range(2, members - 1, 2):
        threshold = _safe_threshold(members, degree, assumed)
        if (
            threshold is not None
            and _hangs_together(members, degree, assumed)
            and _can_be_opened(members, degree, threshold, assumed)
        ):
            return Neighbourhood(degree, threshold)
    return None


def _safe_threshold(members: int, degree: int, assumed: Assumptions) -> int | None:
    """E1: the least t above a third at which members P(t or more of k neighbours collude) <= 2^-sigma."""
    others, colluding = members - 1, _part(assumed.colluding, members)
    ways = math.comb(others, degree)
    least = max(2, (degree + 1) // 3 + 1)
    tail, found = 0, None
    for threshold in range(degree, least - 1, -1):
        tail += math.comb(colluding, threshold) * math.comb(others - colluding, degree - threshold)
        if (members * tail) << assumed.privacy_bits > ways:
            break
        found = threshold
    return found


def _hangs_together(members: int, degree: int, assumed: Assumptions) -> bool:
    """E2: n^2 / 2 pairs of gaps, each of k/2 members, times the chance that k given members are all removed."""
    removed = _part(assumed.colluding, members) + _part(assumed.dropping, members)
    return (members**2 * math.perm(removed, degree)) << assumed.privacy_bits <= 2 * math.perm(members, degree)


def _can_be_opened(members: int, degree: int, threshold: int, assumed: Assumptions) -> bool:
    """E3: members P(fewer than t of k neighbours survive) <= 2^-eta."""
    others, surviving = members - 1, members - _part(assumed.dropping, members) - 1
    tail = sum(math.comb(surviving, one) * math.comb(others - surviving, degree - one) for one in range(threshold))
    return (members * tail) << assumed.success_bits <= math.comb(others, degree)


def _part(share: float, members: int) -> int:
    return math.ceil(share * members)
