"""From clicks to scores on the basic interests, before any protection (Uni-FedRec, "Privacy Protection")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.interests.click_clusters import average_linkage, counts, membership
from device_app.ranking.padding import left_padded
from device_app.ranking.session import GraphSession, usable
from device_app.wire.recall import CLICKS_LIMIT
from device_app.wire.releases import RecallProtocol


@dataclass(frozen=True)
class Interests:
    """Sensitive: the reader's interests without noise; only `privacy.reports` may turn them into something to send.

    scores is [C, B], raw; counts has C entries; labels is [H], the channel of every click, oldest click first.
    """

    scores: NDArray[np.float32]
    counts: tuple[int, ...]
    labels: NDArray[np.int64]


class RecallModel:
    """The device's half of the recall model: context vectors, clusters, decomposition.

    Two graphs of the release: `context` (clicks -> context vectors) and `decompose` (cluster attention and inner
    products with the basis keys).
    """

    def __init__(self, context: GraphSession, decompose: GraphSession, protocol: RecallProtocol) -> None:
        self._context = context
        self._decompose = decompose
        self.protocol = protocol

    def contexts(self, clicks: NDArray[np.float32]) -> NDArray[np.float32]:
        """g = MHSA(h): clicks [H, D], oldest first -> [H', D] for the newest H' = min(H, 50).

        Where the release's graph gives none that can be used, the clicks themselves stand for their contexts.
        """
        kept = min(len(clicks), CLICKS_LIMIT)
        if not kept:
            return np.zeros((0, clicks.shape[1]), dtype=np.float32)
        padded, mask = left_padded(clicks)
        whole = usable(lambda: self._context(clicks=padded, click_mask=mask)["contexts"], padded, "contexts of clicks")
        return whole[0, -kept:]

    def clusters(self, contexts: NDArray[np.float32]) -> NDArray[np.int64]:
        """The channel of every click, by the release's distance and channel limit."""
        return average_linkage(contexts, self.protocol.cluster_distance, self.protocol.channels_limit)

    def decompose(self, contexts: NDArray[np.float32], labels: NDArray[np.int64]) -> Interests:
        """a_c,i = <r_c, ekey_i> for every channel: scores [C, B].

        Zeros stand for scores that the release's graph can't give. Raises ValueError without clicks.
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
