"""How far apart clicks may lie and still be one interest: the cluster distance d, measured on pseudo-readers.

The paper's d = 1 belongs to its own vectors. Ours is set so that readers of several topics get 3 to 4 channels on the
average; the design study used a mean of 3.7.
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
    """The distance, the mean channel count it gives, and how many of the readers have 1, 2, .. C_max channels."""

    cluster_distance: float
    mean_channels: float
    channel_counts: tuple[int, ...]
    readers: int
    seed: int

    def facts(self) -> dict[str, Any]:
        """The calibration as JSON, for the release's row."""
        return asdict(self)


def pseudo_readers(
    vectors: NDArray[np.float32],
    topics: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    readers: int = READERS,
) -> list[NDArray[np.float32]]:
    """Readers drawn from the pool: 10 to 50 clicks over 2 to 5 topics, with uneven shares.

    vectors is [n, D] and topics [n] the topic of each. Each reader is [H, D]; a pool smaller than a history repeats.
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
    """The distance whose mean channel count over `readers`, capped at C_max, is nearest to `mean_channels`.

    contexts maps one reader's clicks [H, D] to the context vectors that get clustered. The mean count falls as d grows,
    so the distance is found by bisection over the merge heights that occur; one that is given is only measured. Raises
    ValueError without readers, or if all merges happen at height 0.
    """
    if not readers:
        raise ValueError("readers: needs at least one")
    heights = [
        linkage(np.asarray(contexts(clicks), dtype=np.float64), method="average")[:, 2]
        for clicks in readers
        if len(clicks) > 1
    ]
    # 1e-9 merges exact repeats in every case: two clicks on near-equal vectors are one interest.
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
        # Halfway to the next height: rounding on a device must not move a merge across the distance.
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
    """Channels of each reader: merges above the distance do not happen, and C_max is the cap."""
    return np.array([min(limit, int((reader > distance).sum()) + 1) for reader in heights], dtype=np.int64)
