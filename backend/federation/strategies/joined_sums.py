"""Split a cohort into groups with a secure sum each and join the sums.

So a malicious client spoils only its own group. In a secure sum nobody sees single updates, so a robust mean of them
(`fedavg`) is impossible. But a cohort may be split into groups with a sum each, whose means are joined by a robust
centre. If nothing else is known, the centre is the median. If the distribution of the noise is known, Huber's location
(Huber 1964) costs less accuracy: it cuts off what a group's noise is unlikely to reach and leaves the rest unchanged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate
from backend.federation.errors import UpdateRefused
from backend.federation.protections.sum_bounds import too_alike
from backend.federation.secagg.graph import CohortSplit
from backend.federation.strategies.fedavg import Centre, Median
from protocol.ring import WeightedSum

HUBER_TUNING: Final = 1.345
"""The cut-off of Huber's location in standard deviations: the usual constant, 95 % efficient under Gaussian noise."""
HUBER_VARIANCE: Final = 1 / 0.95
"""The variance of its noise relative to the mean's, for very many groups; less for fewer (1.036 for three)."""
HUBER_STEPS: Final = 60
MEDIAN_VARIANCE: Final = math.pi / 2
"""The variance of the median's noise relative to the mean's, for very many groups with Gaussian noise; less for fewer
(1.43 for five).
"""
NOISE_KEPT: Final = 3.0
"""By how many standard deviations of noise a number may exceed what devices can contribute."""


@dataclass(frozen=True)
class HuberLocation:
    """Huber's location of groups' means whose noise has a known distribution (Huber 1964).

    It is m with sum_g psi(n_g (x_g - m)) = 0, where psi cuts off at k s sqrt(n_g), k standard deviations of the noise
    of a group's sum. No group, whatever its value, moves the others' sum by more than that, while the mean takes all of
    it. Honest values mostly stay unchanged: if nothing is cut off, the location is the sum of all devices divided by
    their number. Without noise it is the median.

    Args:
        devices: n_g of each group.
        deviation: s of one device's noise.
        tuning: k.
    """

    devices: tuple[int, ...]
    deviation: float
    tuning: float = HUBER_TUNING

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the location by modified residuals, starting at the median.

        A step never passes the solution.
        """
        means = stack.astype(np.float64)
        devices = np.array(self.devices, dtype=np.float64).reshape(-1, *[1] * (means.ndim - 1))
        reach = self.tuning * self.deviation * np.sqrt(devices)
        found = np.asarray(np.median(means, axis=0), dtype=np.float64)
        for _ in range(HUBER_STEPS):
            found = found + np.clip(devices * (means - found), -reach, reach).sum(axis=0) / devices.sum()
        return np.asarray(found)


@dataclass(frozen=True)
class JoinOfSums(ABC):
    """Splits a cohort at random into groups with sums and noise of their own, and joins them.

    A cohort that is too small for that many groups remains one sum.

    Args:
        members: the fewest survivors of a group, or the round's cohort_minimum if that is larger.
        groups: the fewest groups, such that a malicious client in one can't decide the result; of three one may be
            malicious.
        left: how many groups' sums must open and pass their bounds. A detected malicious client loses its whole
            group, so if two of five groups are left, three have been lost.
    """

    members: int = 10
    groups: int = 3
    left: int = 2
    words: ClassVar[str]
    """The name of the centre in descriptions."""

    def __post_init__(self) -> None:
        if not (self.members >= 2 and 1 <= self.left <= self.groups and self.groups >= 3):
            raise ValueError(
                f"members must be at least 2, groups at least 3, and left from 1 to groups; got {self.members}, "
                f"{self.groups} and {self.left}"
            )

    def split_of(self, cohort: int) -> CohortSplit:
        """Return how to split a cohort of this size."""
        return CohortSplit(members=self.members, parts=self.groups, left=self.left, cohort=cohort)

    @abstractmethod
    def join(self, sums: Sequence[WeightedSum], radius: float | None, noise_variance: float = 0.0) -> JoinedSums:
        """Join the sums of the groups that passed.

        noise_variance: variance of one device's share, in the numbers' unit squared. Raises UpdateRefused if the join
        leaves out so many groups that fewer than `left` remain.
        """


@dataclass(frozen=True)
class MedianOfSums(JoinOfSums):
    """Joins groups by the coordinate median.

    Nothing about their noise or differences need be known. If more than half of the groups contain a malicious client,
    these decide the median together. So sums that agree more than honest ones can (`sum_bounds.too_alike`) are left
    out, if there is a radius and noise.
    """

    words: ClassVar[str] = "the median"

    def join(self, sums: Sequence[WeightedSum], radius: float | None, noise_variance: float = 0.0) -> JoinedSums:
        """Join the sums; all groups have the same weight."""
        alike: frozenset[int] = frozenset() if radius is None else too_alike(sums, radius, math.sqrt(noise_variance))
        kept = [each for at, each in enumerate(sums) if at not in alike]
        if len(kept) < min(self.left, len(sums)):
            raise UpdateRefused(
                f"{len(alike)} of {len(sums)} groups moved further in one direction than honest devices can: some "
                "devices violated the round's limits.",
                field="body",
                limit=f"{self.left} groups",
            )
        return JoinedSums(kept, Median(), radius, noise_growth=MEDIAN_VARIANCE, noise_variance=noise_variance)


@dataclass(frozen=True)
class HuberOfSums(JoinOfSums):
    """Joins groups by Huber's location, for results that are used as sums.

    Their noise keeps a known distribution.

    Args:
        most: what one device can contribute to a number, by tensor; the least is 0. A group's number beyond
            what all its devices can contribute, or beyond its noise, is limited to that before groups are joined, so
            that a malicious group counts no more than one whose devices all contributed the most. Tensors that aren't
            named stay unchanged.
    """

    most: Mapping[str, float] = field(default_factory=dict)
    words: ClassVar[str] = "Huber's location"

    def join(self, sums: Sequence[WeightedSum], radius: float | None, noise_variance: float = 0.0) -> JoinedSums:
        """Join the sums; groups are weighted by their number of devices."""
        share = float(np.sqrt(noise_variance))
        possible = [self._possible(each, NOISE_KEPT * share * float(np.sqrt(each.samples))) for each in sums]
        centre = HuberLocation(tuple(each.samples for each in sums), share)
        return JoinedSums(possible, centre, radius, noise_growth=HUBER_VARIANCE, noise_variance=noise_variance)

    def _possible(self, group: WeightedSum, noise: float) -> WeightedSum:
        """Return the group's sum with numbers limited to [-noise, what its devices can contribute].

        The upper limit is at least the noise: cutting off noise on one side only would move numbers that are zero.
        """
        within = {
            name: each.clip(-noise, max(self.most[name] * group.samples, noise)) if name in self.most else each
            for name, each in group.tensors.items()
        }
        return WeightedSum(within, group.samples)


class JoinedSums(Aggregate):
    """Secure sums of the groups of a cohort.

    `mean` is the centre of the groups' means by coordinate. With the median groups have equal weights, since they are
    of nearly the same size. A malicious client that passes its own group's bounds moves the median no further than to
    the other groups' values, as long as fewer than half of the groups contain one: two of five. The median of G means
    has up to sqrt(pi / 2) = 1.25 times the standard deviation of their mean, Huber's location 1.026 times.
    """

    def __init__(
        self,
        sums: Sequence[WeightedSum],
        centre: Centre,
        radius: float | None = None,
        *,
        noise_growth: float = 1.0,
        noise_variance: float = 0.0,
    ) -> None:
        """Take the groups' sums; noise_variance: variance of one device's share.

        Raises ValueError for no sum, or for one without samples.
        """
        super().__init__({}, radius)
        if not sums or not all(each.samples for each in sums):
            raise ValueError("sums: at least one is needed, each with samples")
        self.parts, self._centre = tuple(sums), centre
        self.count, self.noise_growth = sum(each.samples for each in sums), noise_growth
        self.room = noise_growth * noise_variance * self.count

    def mean(self) -> dict[str, NDArray[np.float64]]:
        """Return the centre of the groups' means, limited by `within_reach` if there is a radius."""
        return self.within_reach(self._joined())

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """Return what the updates would sum up to if each were the centre of the groups' means."""
        return {name: self.count * each for name, each in self._joined().items()}

    def means_of_groups(self, name: str) -> NDArray[np.float64]:
        """Return one tensor's mean in each group [groups, ...]."""
        return np.stack([each.tensors[name] / each.samples for each in self.parts])

    def _joined(self) -> dict[str, NDArray[np.float64]]:
        names = self.parts[0].tensors
        return {name: self._centre(self.means_of_groups(name)) for name in names}
