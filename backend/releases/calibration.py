"""Calibrate the cluster distance d: how far apart clicks of one interest may be.

It is measured on pseudo-readers. The paper's d = 1 belongs to its own vectors. Ours is set so that readers of several
topics get 3 to 4 channels on average; the design study used a mean of 3.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage

READERS = 300
CLICKS = (10, 50)
TOPICS = (2, 5)
MEAN_CHANNELS = 3.5

Contexts = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True)
class Calibration:
    """The distance, its mean number of channels, and how many readers have 1, 2, .. channels."""

    cluster_distance: float
    mean_channels: float
    channel_counts: tuple[int, ...]
    readers: int
    seed: int

    def facts(self) -> dict[str, Any]:
        """Return the calibration as JSON for the release's row."""
        return asdict(self)


def pseudo_readers(
    vectors: NDArray[np.float32],
    topics: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    readers: int = READERS,
) -> list[NDArray[np.float32]]:
    """Draw readers from the pool: each has 10 to 50 clicks on 2 to 5 topics with uneven shares.

    vectors is [n, D] and topics [n] the topic of each. Each reader is [H, D]; if the pool is smaller than a history,
    articles repeat.
    """
    members = [np.flatnonzero(topics == topic) for topic in np.unique(topics)]
    drawn = []
    for _ in range(readers):
        clicks = int(rng.integers(CLICKS[0], CLICKS[1] + 1))
        wanted = int(rng.integers(TOPICS[0], TOPICS[1] + 1))
        chosen = rng.choice(len(members), size=min(wanted, len(members)), replace=False)
        shares = rng.dirichlet(np.full(len(chosen), 2.0))
        picks = rng.choice(chosen, size=clicks, p=shares)
        rows = [int(rng.choice(members[topic])) for topic in picks]
        drawn.append(vectors[rows])
    return drawn


def calibrate(
    readers: Sequence[NDArray[np.float32]],
    contexts: Contexts,
    *,
    channels_limit: int,
    seed: int,
    mean_channels: float = MEAN_CHANNELS,
    distance: float | None = None,
) -> Calibration:
    """Return the distance whose mean channel count is closest to `mean_channels`.

    The count is over `readers`, capped at C_max. contexts maps one reader's clicks [H, D] to the context vectors that
    are clustered. The mean count decreases in d, so bisection over the merge heights that occur finds the distance; a
    given distance is only measured. Raises ValueError without readers, or if all merges happen at height 0.
    """
    if not readers:
        raise ValueError("readers: needs at least one")
    heights = [
        linkage(np.asarray(contexts(clicks), dtype=np.float64), method="average")[:, 2]
        for clicks in readers
        if len(clicks) > 1
    ]
    # A floor of 1e-9 always merges exact repeats: two clicks on nearly equal vectors are one interest.
    steps = np.unique(np.concatenate([*heights, np.array([1e-9])]))
    steps = steps[steps >= 1e-9]
    if len(steps) < 2:
        raise ValueError("readers: all clicks of every reader have one and the same context vector")
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if _channels(heights, float(steps[middle]), channels_limit).mean() > mean_channels:
            low = middle + 1
        else:
            high = middle
    if distance is None:
        # Use the middle to the next height, so that rounding on a device can't move a merge across the distance.
        distance = float((steps[low] + steps[min(low + 1, len(steps) - 1)]) / 2)
    channels = _channels(heights, distance, channels_limit)
    return Calibration(
        cluster_distance=distance,
        mean_channels=float(channels.mean()),
        channel_counts=tuple(int(n) for n in np.bincount(channels, minlength=channels_limit + 1)[1:]),
        readers=len(heights),
        seed=seed,
    )


def _channels(heights: Sequence[NDArray[np.float64]], distance: float, limit: int) -> NDArray[np.int64]:
    """Return the number of channels of each reader: merges above the distance do not happen.

    C_max is the cap.
    """
    return np.array([min(limit, int((reader > distance).sum()) + 1) for reader in heights], dtype=np.int64)
