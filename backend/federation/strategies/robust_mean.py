"""Means that a few liars can't move far, for rounds whose single updates the server sees: those under local noise.

What they cost, and don't: Laplace noise is far longer than any clipped gradient, and of such noise the coordinate
median has less variance than the mean (b^2/n against 2 b^2/n for many updates; .59 of it for 60), and what is left when
a tenth is cut off at each end has .76 of it. As long as the noise dominates, both still point where the mean of the
gradients does, to first order in clip/scale. Where it doesn't, a coordinate that few readers have a gradient in is
drawn towards zero: what a minority reads is then left out as if it lied. That is the price.

What they hold off: an update may have values up to theta + 60 lambda. A tenth of a cohort that sends them moves the
mean by six scales, the median by .13 scales, the trimmed mean by .3. They don't hold off lies that look like noise: a
tenth that all add a scale in one direction moves each of the means by about a tenth of a scale. And they need every
update at once in memory, where a sum needs one. In a secure sum nobody sees single updates: there groups of the cohort
are joined instead (`joined_sums`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.federation.bounded_mean import Aggregate, Shapes

STACK_LIMIT_BYTES = 512 * 1024 * 1024


class Centre(Protocol):
    """One value a coordinate for many."""

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """stack [n, ...] -> [...]."""
        ...


@dataclass(frozen=True)
class Median:
    """The coordinate median (Yin et al. 2018)."""

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Of an even number the middle of the two."""
        return np.asarray(np.median(stack.astype(np.float64), axis=0))


@dataclass(frozen=True)
class Trimmed:
    """The mean of what is left when a share of the values is cut off at each end, coordinate by coordinate."""

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.share < 0.5:
            raise ValueError(f"share: from 0 to below 0.5, got {self.share}")

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The number cut off at each end is rounded up, so that a share of liars is cut off whole."""
        cut = min(int(np.ceil(self.share * len(stack))), (len(stack) - 1) // 2)
        ordered = np.sort(stack.astype(np.float64), axis=0)
        return np.asarray(ordered[cut : len(stack) - cut].mean(axis=0))


class Stacked(Aggregate):
    """All updates side by side; `mean` is the centre of each coordinate, and `sums` count times that."""

    def __init__(self, shapes: Shapes, centre: Centre) -> None:
        super().__init__({})
        self._shapes, self._centre = dict(shapes), centre
        self._updates: list[Mapping[str, NDArray[np.float32]]] = []

    def add(self, update: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep one update, checked already."""
        self._updates.append(update)
        self.count += 1

    def mean(self) -> dict[str, NDArray[np.float64]]:
        """Raises ValueError if nothing was added."""
        if self.count == 0:
            raise ValueError("count: the centre of no updates is not defined")
        return {name: self._centre(np.stack([each[name] for each in self._updates])) for name in self._shapes}

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """What the updates would sum up to if each were the centre."""
        return {name: self.count * each for name, each in self.mean().items()}
