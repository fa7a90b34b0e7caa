"""Prototypes that move as far as a noisy sum of their readers' vectors allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from backend.federation.grouping.reader_groups import unit

Floats = NDArray[np.float64]

FIRST_LENGTH = 0.7
"""How long the mean of unit vectors of one group is taken to be before any was seen."""
FIRST_VARIANCE = 0.5
"""Squared distance at which the true mean of a group may lie from its first prototype, a topic's centroid."""
SCATTER = 1 - FIRST_LENGTH**2
"""Mean squared distance of a group's readers from their mean."""
DRIFT = 0.01
"""Squared distance that a mean may move between two rounds, since news and readers change."""
SHARE_MEMORY = 0.9
"""Weight of earlier rounds' counts beside a new one's."""


@dataclass(frozen=True)
class Drift:
    """What is believed of K groups: means [K, D] that lie in `axes` directions, with variances [K] along each, and
    members [K] of `readers`, with the variance of each, counted over rounds. noises [K] is the part that the
    mechanism's noise has in the means, again a variance along each direction.

    A Kalman filter: each round's sum s of a group with m readers is m mu + noise, with variance m nu^2 of the readers
    about mu and sigma^2 of the mechanism. m is noisy too: it's drawn to an even share of the cohort, and what stays
    unknown of it counts as noise. Where the noise is large the belief hardly moves, so a cohort that is too small for
    its budget costs budget and does little harm.
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
        """At prototypes [K, D] of length 1 that tell nothing of any reader. axes: D unless given."""
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
        """[K, D], rows of length 1."""
        return unit(self.means)

    def apart(self, share: float) -> NDArray[np.float32]:
        """[K, D], rows of length 1: the means less `share` of the mean of all readers, which all have in common.

        0 gives `prototypes`.
        """
        return unit(self.means - share * (self.shares() @ self.means))

    def noise_share(self) -> float:
        """How much of what sets the groups apart is the mechanism's noise: of the squared lengths of the means less
        their mean, 0 to 1, mean of all groups.

        The noise in the means is known exactly, as the filter is linear. The groups count alike here, so that noisy
        shares don't pass for a distance between groups.
        """
        lengths = np.square(self.means - self.means.mean(axis=0)).sum(axis=1)
        return float(np.minimum(self.axes * self.noises / np.maximum(lengths, 1e-12), 1.0).mean())

    def seen(
        self, sums: Floats, members: Floats, readers: int, *, sums_variance: float, members_variance: float
    ) -> Self:
        """After a round of so many readers: sums [K, D] of the groups' unit vectors, as far as they lie in the `axes`,
        and their counts [K], each with its noise's variance.

        Raises ValueError for other shapes or numbers that are not finite.
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
        """[K], adding up to 1: how many of the readers are near each prototype, drawn to even shares by the noise.

        No share is below a tenth of an even one: Bayes' rule must not rule a prototype out by a noisy count.
        """
        K = len(self.members)
        even = self.readers / K
        if even == 0:
            return np.full(K, 1 / K)
        trust = even**2 / (even**2 + self.members_variance)
        drawn = np.maximum(even + trust * (self.members - even), 0.1 * even)
        return np.asarray(drawn / drawn.sum(), dtype=np.float64)
