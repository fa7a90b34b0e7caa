"""Who masks with whom: everybody with everybody, or the sparse graph of Bell et al. 2020.

The sparse graph is a Harary graph (a circle on which each member is joined to the k/2 next on either side) over a
random permutation; k and its threshold follow from the number of members (`device_app.wire.neighbourhood`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_NUMBER = np.dtype("<u2")


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
        """A member and its neighbours, ascending. The work is that of k numbers."""
        if self.degree >= self.members - 1:
            return tuple(range(1, self.members + 1))
        return tuple(_closed(self.circle, self.degree)[member - 1].tolist())

    def fewest(self, chosen: Collection[int]) -> int:
        """The smallest number of chosen ones that any closed neighbourhood holds."""
        if self.degree >= self.members - 1:
            return len(chosen)
        circle = np.frombuffer(self.circle, dtype=_NUMBER)
        hits = np.isin(circle, np.fromiter(chosen, dtype=_NUMBER))
        width = self.degree + 1
        around = np.concatenate(([0], np.cumsum(np.concatenate((hits, hits[: width - 1])))))
        return int((around[width:] - around[:-width]).min())


@lru_cache(maxsize=8)
def _closed(circle: bytes, degree: int) -> NDArray[np.uint16]:
    """[n, k + 1] of every member with its neighbours, ascending, of the circles asked for last: whoever opens its boxes
    asks for those of all its neighbours."""
    around = np.frombuffer(circle, dtype=_NUMBER)
    reach = np.arange(-(degree // 2), degree // 2 + 1)
    near = around.take(np.arange(around.size)[:, None] + reach, mode="wrap")
    near.sort(axis=1)
    closed = np.empty_like(near)
    closed[around - 1] = near
    return closed
