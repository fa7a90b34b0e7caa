"""Decomposes interest clusters into scores on basic interests, before any noise is added.

Uni-FedRec, "Privacy Protection". The basic interests are the prototypes of the release's codebook (`on_prototypes`, the
default) or the basis of its recall model (`RecallModel.decompose`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.ranking.padding import left_padded
from device_app.ranking.session import GraphSession, usable
from device_app.reading.click_clusters import average_linkage, counts, membership
from protocol.recall import CLICKS_LIMIT
from protocol.releases import RecallProtocol

GRID_BITS = 40


def on_prototypes(
    prototypes: NDArray[np.float32], clicks: NDArray[np.float32], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return <sum of the channel's clicks, prototype> for every channel: scores [C, K].

    prototypes [K, D], clicks [H, D], labels [H]. Divided by the channel's clicks they are the weights of its mean.
    Inner products are rounded to a grid on which additions are exact, so the total over channels, from which a report
    is made, does not depend on how a release clusters the clicks. Raises ValueError for vectors that don't fit
    together or aren't finite.
    """
    if clicks.ndim != 2 or prototypes.shape[1:] != clicks.shape[1:] or len(labels) != len(clicks):
        raise ValueError(f"clicks has shape {clicks.shape}, prototypes {prototypes.shape}, labels {labels.shape}")
    if not np.isfinite(clicks).all():
        raise ValueError("clicks has values that are not finite: nothing is released")
    products = clicks.astype(np.float64) @ prototypes.T.astype(np.float64)  # [H, K]
    _, exponent = np.frexp(np.abs(products).max(initial=0.0))
    grid = 2.0 ** (int(exponent) - GRID_BITS)
    scores = np.zeros((int(labels.max(initial=-1)) + 1, len(prototypes)))
    np.add.at(scores, labels, np.rint(products / grid) * grid)
    return scores


@dataclass(frozen=True)
class Interests:
    """The reader's interests without noise.

    Sensitive: only `privacy.sealed_reports` may derive a report from it. scores is [C, B], raw; counts has C entries;
    labels is [H], the channel of every click, oldest click first.
    """

    scores: NDArray[np.float32]
    counts: tuple[int, ...]
    labels: NDArray[np.int64]


class RecallModel:
    """The device's half of the recall model: context vectors, clusters, decomposition.

    Uses two graphs of the release: `context` (clicks -> context vectors) and `decompose` (cluster attention and inner
    products with the basis keys).
    """

    def __init__(self, context: GraphSession, decompose: GraphSession, protocol: RecallProtocol) -> None:
        self._context = context
        self._decompose = decompose
        self.protocol = protocol

    def contexts(self, clicks: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return g = MHSA(h): clicks [H, D], oldest first -> [H', D] for the newest H' = min(H, 50).

        If the release's graph returns no usable contexts, the clicks themselves are returned.
        """
        kept = min(len(clicks), CLICKS_LIMIT)
        if not kept:
            return np.zeros((0, clicks.shape[1]), dtype=np.float32)
        padded, mask = left_padded(clicks)
        whole = usable(lambda: self._context(clicks=padded, click_mask=mask)["contexts"], padded, "contexts of clicks")
        return whole[0, -kept:]

    def clusters(self, contexts: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the channel of every click, by the release's distance and channel limit."""
        return average_linkage(contexts, self.protocol.cluster_distance, self.protocol.channels_limit)

    def decompose(self, contexts: NDArray[np.float32], labels: NDArray[np.int64]) -> Interests:
        """Return a_c,i = <r_c, ekey_i> for every channel: scores [C, B].

        The scores are zeros if the release's graph returns no usable ones. Raises ValueError without clicks.
        """
        if not len(labels):
            raise ValueError("labels: a reader without clicks has no interests to decompose")
        padded, _ = left_padded(contexts)
        members = np.zeros((self.protocol.channels_limit, CLICKS_LIMIT), dtype=np.float32)
        members[:, -len(labels) :] = membership(labels, self.protocol.channels_limit)
        held = counts(labels)
        none = np.zeros((len(held), self.protocol.basis_size), dtype=np.float32)
        scores = usable(
            lambda: self._decompose(contexts=padded, membership=members[None])["scores"][0, : len(held)],
            none,
            "scores of interests",
        )
        return Interests(scores=scores, counts=held, labels=labels)
