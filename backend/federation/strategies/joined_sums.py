"""A cohort in groups, each with a secure sum, joined so that a liar spoils no more than its own group.

In a secure sum nobody sees single updates, so no robust mean of them (`robust_mean`) can be had; but a cohort may be
split into groups with a sum each, whose means a centre joins. Where only that is known, it is the median. Where the
noise's law is, Huber's location (Huber 1964) costs less: it cuts off what a group's noise is unlikely to reach, and
leaves the rest as it is.
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
from backend.federation.strategies.robust_mean import Centre, Median
from device_app.wire.layout import WeightedSum

HUBER_TUNING: Final = 1.345
"""Deviations at which Huber's location cuts off: the usual constant, 95 % efficient under Gaussian noise."""
HUBER_VARIANCE: Final = 1 / 0.95
"""Of its noise, the mean's being 1: for very many groups; less for fewer (1.036 of three)."""
HUBER_STEPS: Final = 60
MEDIAN_VARIANCE: Final = math.pi / 2
"""Of the median's noise, the mean's being 1, for very many groups of Gaussian noise; less for fewer (1.43 of five)."""
NOISE_KEPT: Final = 3.0
"""Standard deviations of noise that a number may lie beyond what devices can give."""


@dataclass(frozen=True)
class HuberLocation:
    """Huber's location of groups' means, whose noise has a known law: m with sum_g psi(n_g (x_g - m)) = 0, where psi
    cuts off at k s sqrt(n_g), k deviations of the noise of a group's sum (Huber 1964).

    A group moves the others' sum by no more than that, whatever it says, where the mean takes all of it. What is no lie
    is mostly left as it is: without anything cut off it is the sum of all devices over their number. Without noise it
    is the median.

    Args:
        devices: n_g of each group.
        deviation: s of one device's noise.
        tuning: k.
    """

    devices: tuple[int, ...]
    deviation: float
    tuning: float = HUBER_TUNING

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """By modified residuals from the median: each step goes towards the solution and never past it."""
        means = stack.astype(np.float64)
        devices = np.array(self.devices, dtype=np.float64).reshape(-1, *[1] * (means.ndim - 1))
        reach = self.tuning * self.deviation * np.sqrt(devices)
        found = np.asarray(np.median(means, axis=0), dtype=np.float64)
        for _ in range(HUBER_STEPS):
            found = found + np.clip(devices * (means - found), -reach, reach).sum(axis=0) / devices.sum()
        return np.asarray(found)


@dataclass(frozen=True)
class JoinOfSums(ABC):
    """A cohort in groups drawn by chance, each with a secure sum and noise of its own, joined by a centre.

    A cohort that doesn't hold that many groups remains one sum.

    Args:
        members: the fewest survivors of a group, or the round's cohort_minimum if that is more.
        groups: the fewest that a liar in one of them can't decide; of three one may lie.
        left: groups whose sums must open and pass their bounds. A liar who is found out takes its group with it, so
            that with two left of five three have spent themselves.
    """

    members: int = 10
    groups: int = 3
    left: int = 2
    words: ClassVar[str]
    """What the centre is called."""

    def __post_init__(self) -> None:
        if not (self.members >= 2 and 1 <= self.left <= self.groups and self.groups >= 3):
            raise ValueError(
                f"members, groups, left: at least 2, at least 3, and 1 to the groups; got {self.members}, "
                f"{self.groups} and {self.left}"
            )

    @abstractmethod
    def join(self, sums: Sequence[WeightedSum], radius: float | None, noise_variance: float = 0.0) -> JoinedSums:
        """Of the groups that passed; noise_variance: of one device's share, in the numbers' unit squared.

        Raises UpdateRefused where the join leaves out so many of them that fewer than `left` remain.
        """


@dataclass(frozen=True)
class MedianOfSums(JoinOfSums):
    """By the coordinate median: nothing need be known of the groups' noise or of how they differ.

    Where more than half of the groups have a liar they decide it together, so sums that are more alike than honest ones
    (`sum_bounds.too_alike`) are left out, where there is a radius and noise.
    """

    words: ClassVar[str] = "the median"

    def join(self, sums: Sequence[WeightedSum], radius: float | None, noise_variance: float = 0.0) -> JoinedSums:
        """Groups count the same."""
        alike: frozenset[int] = frozenset() if radius is None else too_alike(sums, radius, math.sqrt(noise_variance))
        kept = [each for at, each in enumerate(sums) if at not in alike]
        if len(kept) < min(self.left, len(sums)):
            raise UpdateRefused(
                f"{len(alike)} of {len(sums)} groups go further into one direction than honest devices can: some have "
                "broken the terms.",
                field="body",
                limit=f"{self.left} groups",
            )
        return JoinedSums(kept, Median(), radius, noise_growth=MEDIAN_VARIANCE, noise_variance=noise_variance)


@dataclass(frozen=True)
class HuberOfSums(JoinOfSums):
    """By Huber's location, for sums that are used as sums: their noise stays what it is, and its law is told.

    Args:
        most: by tensor, what one device can give to a number of it, the least being 0. A group's number beyond that of
            all its devices, or beyond its noise, is brought back to it before groups are joined, so that a group which
            lies counts no more than one whose devices all gave the most. A tensor that isn't named stays as it is.
    """

    most: Mapping[str, float] = field(default_factory=dict)
    words: ClassVar[str] = "Huber's location"

    def join(self, sums: Sequence[WeightedSum], radius: float | None, noise_variance: float = 0.0) -> JoinedSums:
        """Groups count by their devices."""
        share = float(np.sqrt(noise_variance))
        possible = [self._possible(each, NOISE_KEPT * share * float(np.sqrt(each.samples))) for each in sums]
        centre = HuberLocation(tuple(each.samples for each in sums), share)
        return JoinedSums(possible, centre, radius, noise_growth=HUBER_VARIANCE, noise_variance=noise_variance)

    def _possible(self, group: WeightedSum, noise: float) -> WeightedSum:
        """Numbers within [-noise, what its devices can give], and noise above zero too where that is more: cutting it
        off on one side alone would move what is zero."""
        within = {
            name: each.clip(-noise, max(self.most[name] * group.samples, noise)) if name in self.most else each
            for name, each in group.tensors.items()
        }
        return WeightedSum(within, group.samples)


class JoinedSums(Aggregate):
    """Secure sums of the groups of a cohort; `mean` is the centre of the groups' means, coordinate by coordinate.

    By the median groups count alike, as they are of nearly one size. A liar that passes its own group's bounds moves it
    no further than to the other groups' values, as long as fewer than half of the groups have one: of five groups two.
    The median of G means has up to sqrt(pi / 2) = 1.25 of the standard deviation of their mean, Huber's location 1.026.
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
        """noise_variance: of one device's share. Raises ValueError for no sum, or for one without samples."""
        super().__init__({}, radius)
        if not sums or not all(each.samples for each in sums):
            raise ValueError("sums: at least one, and samples in each")
        self.parts, self._centre = tuple(sums), centre
        self.count, self.noise_growth = sum(each.samples for each in sums), noise_growth
        self.room = noise_growth * noise_variance * self.count

    def mean(self) -> dict[str, NDArray[np.float64]]:
        """The centre of the groups' means, brought back within reach where there is a radius."""
        return self.within_reach(self._joined())

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """What the updates would sum up to if each were the centre of the groups' means."""
        return {name: self.count * each for name, each in self._joined().items()}

    def means_of_groups(self, name: str) -> NDArray[np.float64]:
        """One tensor's mean in each group [groups, ...]."""
        return np.stack([each.tensors[name] / each.samples for each in self.parts])

    def _joined(self) -> dict[str, NDArray[np.float64]]:
        names = self.parts[0].tensors
        return {name: self._centre(self.means_of_groups(name)) for name in names}
