"""Uni-FedRec's lists from several vectors per reader.

Lists come from exact interest channels, from channels through a basis of topics, and with noise. Deviation from the
paper, decided before implementation: clusters are made of raw title vectors, and every list adds log popularity,
because lists without it find far less.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.recall.decode import aggregate
from backend.recall.merge import merge
from device_app.privacy.noise_sources import SeededNoise, laplace
from device_app.reading.click_clusters import average_linkage
from experiments.recall.measure import DEPTH, PossibleLists, Rows, best
from experiments.recall.modes import EmbeddedSplit
from experiments.recall.tower import Vectors

CLUSTER_DISTANCE = 1.36
CHANNELS_LIMIT = 5
CHANNELS_AT_ONCE = 512


@dataclass(frozen=True)
class Channels:
    """Unit vectors [c, D] of all readers' channels, grouped by reader, and the number of clicks in each."""

    vectors: Vectors
    counts: tuple[tuple[int, ...], ...]

    @property
    def mean(self) -> float:
        return len(self.vectors) / len(self.counts)


def channels(titles: Vectors, news: Vectors, histories: Sequence[Rows]) -> Channels:
    """Return average-linkage clusters of each history by its titles; a channel is the mean of its clicks."""
    vectors, counts = [], []
    for rows in histories:
        labels = average_linkage(titles[rows], CLUSTER_DISTANCE, CHANNELS_LIMIT)
        sizes = np.bincount(labels)
        vectors += [news[rows[labels == channel]].mean(axis=0) for channel in range(len(sizes))]
        counts.append(tuple(sizes.tolist()))
    found = np.stack(vectors)
    return Channels(found / np.linalg.norm(found, axis=1, keepdims=True), tuple(counts))


def lists(study: EmbeddedSplit, found: Channels, sharpness: float, depth: int = DEPTH) -> PossibleLists:
    """Return one list per channel, merged by the channels' numbers of clicks with the server's merge."""
    ranked = np.concatenate(
        [
            best(study.scores(found.vectors[start : start + CHANNELS_AT_ONCE], sharpness), depth)
            for start in range(0, len(found.vectors), CHANNELS_AT_ONCE)
        ]
    )
    merged, start = [], 0
    for counts in found.counts:
        mine = ranked[start : start + len(counts)].tolist()
        merged.append(merge(mine, counts, depth))
        start += len(counts)
    return PossibleLists.own(np.array(merged, dtype=np.int64))


def decomposed(found: Channels, basis: Vectors, sharpness: float) -> Channels:
    """Return channels reconstructed from a basis that is both keys and values: [c, D] -> softmax(tau <r, key>)
    values.
    """
    return Channels(aggregate(sharpness * (found.vectors @ basis.T).astype(np.float64), basis), found.counts)


def noisy(found: Channels, basis: Vectors, *, clip: float, scale: float, source: SeededNoise) -> Channels:
    """Return channels from the paper's report, decoded as in the paper: clip(<r, key>) + Laplace(scale) on
    every score.
    """
    scores: NDArray[np.float64] = np.clip(found.vectors @ basis.T, -clip, clip).astype(np.float64)
    return Channels(aggregate(scores + laplace(source, scale, scores.shape), basis), found.counts)
