"""Prototypes that follow a noisy sum of their readers' vectors, as far as the noise allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping.reader_groups import unit

Floats = NDArray[np.float64]

FIRST_LENGTH = 0.7
"""The assumed length of the mean of a group's unit vectors before any were seen."""
FIRST_VARIANCE = 0.5
"""The assumed mean squared distance of a group's true mean from its first prototype, a topic's centroid."""
SCATTER = 1 - FIRST_LENGTH**2
"""Mean squared distance of a group's readers from their mean."""
DRIFT = 0.01
"""Squared distance that a mean may move between two rounds, since articles and readers change."""
SHARE_MEMORY = 0.9
"""The weight of earlier rounds' counts relative to the new one's."""


@dataclass(frozen=True)
class Drift:
    """The estimate of K groups by a Kalman filter.

    It holds the means [K, D] of the groups, which lie in a subspace of `axes` directions, with variances [K] along
    each; and the members [K] of `readers`, with the variance of each, accumulated over rounds. noises [K] is the part
    of the mechanism's noise in the means, also as a variance along each direction.

    The sum s of a group with m readers is modelled as m mu + noise, where the noise has variance m nu^2 from the
    readers about mu and sigma^2 from the mechanism. m is noisy, too: it is shrunk towards an even share of the cohort,
    and its remaining uncertainty counts as noise. If the noise is large, the estimate hardly moves, so a cohort that is
    too small for its budget spends budget and does little harm.
    """

    means: Floats
    variances: Floats
    members: Floats
    members_variance: float
    readers: float
    noises: Floats
    axes: int

    @classmethod
    def begin(cls, prototypes: NDArray[np.float32], *, axes: int | None = None) -> Self:
        """Return the estimate at prototypes [K, D] of length 1, before any reader was seen.

        axes: D unless given.
        """
        K, D = prototypes.shape
        axes = D if axes is None else axes
        return cls(
            FIRST_LENGTH * prototypes.astype(np.float64),
            np.full(K, FIRST_VARIANCE / axes),
            np.zeros(K),
            0.0,
            0.0,
            np.zeros(K),
            axes,
        )

    @property
    def prototypes(self) -> NDArray[np.float32]:
        """The prototypes [K, D], rows of length 1."""
        return unit(self.means)

    def apart(self, share: float) -> NDArray[np.float32]:
        """Return the means less `share` of the mean of all readers, [K, D], rows of length 1.

        The mean of all readers is what they have in common. A share of 0 gives `prototypes`.
        """
        return unit(self.means - share * (self.shares() @ self.means))

    def noise_share(self) -> float:
        """Return how much of the distance between groups is the mechanism's noise, from 0 to 1.

        It is the noise's share of the squared length of each mean less the mean of means, averaged over the groups. The
        noise in the means is known exactly, since the filter is linear. The groups have equal weight here, so that
        noisy member counts don't look like a distance between groups.
        """
        lengths = np.square(self.means - self.means.mean(axis=0)).sum(axis=1)
        return float(np.minimum(self.axes * self.noises / np.maximum(lengths, 1e-12), 1.0).mean())

    def seen(
        self, sums: Floats, members: Floats, readers: int, *, sums_variance: float, members_variance: float
    ) -> Self:
        """Return the estimate after a round with so many readers.

        sums: [K, D] of the groups' unit vectors, projected onto the `axes`. members: counts [K]. sums_variance and
        members_variance: variance of the noise on each number. Raises ValueError for other shapes or values that are
        not finite.
        """
        K, D = self.means.shape
        if sums.shape != (K, D) or members.shape != (K,):
            raise ValueError(f"sums, members: [{K}, {D}] and [{K}], got {sums.shape} and {members.shape}")
        if not (np.isfinite(sums).all() and np.isfinite(members).all()):
            raise ValueError("sums, members: not finite")
        even = readers / K
        trust = even**2 / (even**2 + members_variance)
        counted = np.maximum(even + trust * (members - even), 0.0)
        variances = self.variances + DRIFT / self.axes
        miscounted = trust * members_variance * np.square(self.means).sum(axis=1) / self.axes
        spread = counted**2 * variances + counted * (SCATTER / self.axes) + miscounted + sums_variance
        gain = np.divide(variances * counted, spread, out=np.zeros(K), where=spread > 0)
        return type(self)(
            self.means + gain[:, None] * (sums - counted[:, None] * self.means),
            variances * (1 - gain * counted),
            SHARE_MEMORY * self.members + members,
            SHARE_MEMORY**2 * self.members_variance + members_variance,
            SHARE_MEMORY * self.readers + readers,
            np.square(1 - gain * counted) * self.noises + np.square(gain) * (miscounted + sums_variance),
            self.axes,
        )

    def shares(self) -> Floats:
        """Return the share of readers near each prototype, [K].

        Shares are shrunk towards even ones by the noise. The shares add up to 1. No share is below a tenth of an even
        one, so that a noisy count can't make Bayes' rule exclude a prototype.
        """
        K = len(self.members)
        even = self.readers / K
        if even == 0:
            return np.full(K, 1 / K)
        trust = even**2 / (even**2 + self.members_variance)
        drawn = np.maximum(even + trust * (self.members - even), 0.1 * even)
        return np.asarray(drawn / drawn.sum(), dtype=np.float64)
