"""Means that few malicious clients can't move far, if the server sees single updates.

These are rounds under local noise. The cost is low: Laplace noise is far longer than any clipped gradient, and for such
noise the coordinate median has less variance than the mean (b^2/n instead of 2 b^2/n for many updates; .59 of it for
60), and the trimmed mean without a tenth at each end has .76 of it. As long as the noise dominates, both still point
where the mean of the gradients points, to first order in clip/scale. If it doesn't, a coordinate in which few readers
have a gradient is drawn towards zero: what only a minority reads is then left out as if it were malicious. That is the
cost.

The protection: an update may have values up to theta + 60 lambda. If a tenth of a cohort sends these, the mean moves by
six scales, the median by .13 scales, and the trimmed mean by .3. Malicious updates that look like noise are not
stopped: a tenth that all add one scale in one direction moves each of the means by about a tenth of a scale. All
updates must be in memory at once, where a sum needs one at a time. In a secure sum nobody sees single updates: there
groups of the cohort are joined instead (`joined_sums`).
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
    """Reduces many values of each coordinate to one."""

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the centre of a stack: [n, ...] -> [...]."""
        ...


@dataclass(frozen=True)
class Median:
    """The coordinate median (Yin et al. 2018)."""

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the median; for an even number of values, the mean of the middle two."""
        return np.asarray(np.median(stack.astype(np.float64), axis=0))


@dataclass(frozen=True)
class Trimmed:
    """The coordinate-wise mean without a share of the values at each end."""

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.share < 0.5:
            raise ValueError(f"share: from 0 to below 0.5, got {self.share}")

    def __call__(self, stack: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the trimmed mean.

        The number cut off at each end is rounded up to cover the whole share.
        """
        cut = min(int(np.ceil(self.share * len(stack))), (len(stack) - 1) // 2)
        ordered = np.sort(stack.astype(np.float64), axis=0)
        return np.asarray(ordered[cut : len(stack) - cut].mean(axis=0))


class Stacked(Aggregate):
    """Keeps all updates; `mean` is the centre of each coordinate, `sums` that times the count."""

    def __init__(self, shapes: Shapes, centre: Centre) -> None:
        super().__init__({})
        self._shapes, self._centre = dict(shapes), centre
        self._updates: list[Mapping[str, NDArray[np.float32]]] = []

    def add(self, update: Mapping[str, NDArray[np.float32]]) -> None:
        """Keep one update, which must already have been validated."""
        self._updates.append(update)
        self.count += 1

    def mean(self) -> dict[str, NDArray[np.float64]]:
        """Return the centre of the updates. Raises ValueError if there are none."""
        if self.count == 0:
            raise ValueError("count: the centre of no updates is not defined")
        return {name: self._centre(np.stack([each[name] for each in self._updates])) for name in self._shapes}

    def sums(self) -> dict[str, NDArray[np.float64]]:
        """Return what the updates would sum up to if each were the centre."""
        return {name: self.count * each for name, each in self.mean().items()}
