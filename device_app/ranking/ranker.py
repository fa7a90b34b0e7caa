"""The local ranker: how well candidates fit the reader's clicks, by a graph of the release."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.ranking.history import left_padded
from device_app.ranking.session import GraphSession


class Ranker:
    """Scores candidates with a `score` graph (softmax-weighted cosine by default, NRMS by choice)."""

    def __init__(self, graph: GraphSession, *, name: str) -> None:
        self._graph = graph
        self.name = name

    def score(self, clicks: NDArray[np.float32], candidates: NDArray[np.float32]) -> NDArray[np.float32]:
        """clicks [H, D] oldest first, candidates [R, D] -> scores [R], higher fits better.

        Without clicks, or without candidates, the scores are zeros.
        """
        if not len(clicks) or not len(candidates):
            return np.zeros(len(candidates), dtype=np.float32)
        padded, mask = left_padded(clicks)
        scores = self._graph(clicks=padded, click_mask=mask, candidates=candidates[None].astype(np.float32, copy=False))
        return np.asarray(scores["scores"][0], dtype=np.float32)
