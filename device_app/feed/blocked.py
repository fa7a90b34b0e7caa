"""News the reader has ruled out: blocked names, muted interests, 'not interested'."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, unit
from device_app.feed.tastes import Tastes

MUTED_COSINE = 0.6
"""A candidate this near to a click of a muted interest, and nearer to it than to every other click, is muted too."""


def allowed(candidates: Candidates, tastes: Tastes) -> NDArray[np.bool_]:
    """[n]: True where nothing the reader said rules the news out.

    Names compare exactly, as the backend writes them. Already opened news is ruled out too.
    """
    ruled_out = candidates.named(candidates.ids, tastes.opened | tastes.disliked_ids)
    ruled_out |= candidates.named(candidates.topics, tastes.blocked.topics)
    ruled_out |= candidates.named(candidates.sections, tastes.blocked.sections)
    ruled_out |= candidates.named(candidates.publishers, tastes.blocked.publishers)
    return ~(ruled_out | muted(candidates, tastes))


def muted(candidates: Candidates, tastes: Tastes) -> NDArray[np.bool_]:
    """[n]: True where the nearest click belongs to a muted interest and is near."""
    if not tastes.muted or not len(candidates):
        return np.zeros(len(candidates), dtype=bool)
    near_muted = _nearest(candidates, np.concatenate([interest.vectors for interest in tastes.muted]))
    near_rest = _nearest(candidates, tastes.click_vectors)
    return np.asarray((near_muted >= MUTED_COSINE) & (near_muted > near_rest))


def _nearest(candidates: Candidates, clicks: NDArray[np.float32]) -> NDArray[np.float32]:
    """[n]: greatest cosine to any click, -1 without clicks."""
    return np.asarray((candidates.unit_vectors @ unit(clicks).T).max(axis=1, initial=-1.0))
