"""What the views of this reader give to a ranker: the second view's vector, and each view's own user tower."""

from __future__ import annotations

import numpy as np

from device_app.interests.searched import SearchedInterests
from device_app.ranking.views_ranker import ReaderViews
from device_app.store.towers import TowerStore


class ViewsOfReader:
    """Read when a ranker of views makes a feed; other rankers never ask."""

    def __init__(self, searched: SearchedInterests, reading: TowerStore, searches: TowerStore) -> None:
        self._searched = searched
        self._towers = {"reading": reading, "searches": searches}

    def given(self, model: str, encoder: str) -> ReaderViews:
        """For a model of a release of this encoder."""
        vector = self._searched.vector(encoder)
        found = {view: towers.get(model) for view, towers in self._towers.items()}
        return ReaderViews(
            searched=np.zeros((0, 0), np.float32) if vector is None else vector[None],
            towers={view: tower for view, tower in found.items() if tower is not None},
        )
