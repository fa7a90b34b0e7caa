"""What reports are made from: the reader's clicks as vectors, and the one vector that they come to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ReportInput:
    """Sensitive: what a report is made from. clicks is [H, D]; H is 0 where no clicked news has a vector here.

    For modes made from the decomposition alone: raw scores [C, B] on the basic interests, and counts [C], the clicks
    of each channel. searched is the second view's vector [D], of length 1: saved searches and followed topics. None:
    there are none, or they are kept out of reports.
    """

    clicks: NDArray[np.float32]
    scores: NDArray[np.floating] = field(default_factory=lambda: np.empty((0, 0)))
    counts: tuple[int, ...] = ()
    searched: NDArray[np.float32] | None = None

    @property
    def vector(self) -> NDArray[np.float32]:
        """u: the mean of the click vectors, scaled to length 1 (zero where they cancel out); with a second view, the
        mean of both views' vectors, scaled again.

        Views count alike, as in FL-MV-DSSM's Algorithm 2: each gives its vector and not how much stands behind it.
        """
        read = user_vector(self.clicks)
        return read if self.searched is None else user_vector(np.stack([read, self.searched]))


def user_vector(clicks: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of clicks [H, D], scaled to length 1; zero where they cancel out, or where there are none."""
    if not len(clicks):
        return np.zeros(clicks.shape[1], dtype=np.float32)
    mean = clicks.mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length > 0 else mean, dtype=np.float32)
