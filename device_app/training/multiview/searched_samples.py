"""Samples of the second view: articles opened from search results, given what the reader searches for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.ranking.padding import left_padded
from device_app.store.opinions import Stances
from device_app.store.searches import Searches
from device_app.training.samples import Samples
from protocol.recall import CLICKS_LIMIT

TimedQuery = tuple[datetime, NDArray[np.float32]]


class SearchedSamples:
    """A SampleSource over the view's own store and the item set.

    A positive is news opened from results while something was saved or followed; the user's rows are the vectors of
    what was saved or followed by then (the newest fifty), where another view has clicks. Negatives are items that were
    never opened from results. Sensitive: see ReaderSamples.
    """

    def __init__(
        self,
        searches: Searches,
        stances: Stances,
        encoder: str,
        items: tuple[Sequence[str], NDArray[np.float32]],
    ) -> None:
        held = searches.meanings(encoder)
        wished = [(one.saved_at, ("search", one.words)) for one in searches.saved()]
        wished += [(since, ("topic", name)) for name, since in stances.followed_topics()]
        queries: list[TimedQuery] = sorted(
            ((at, held[key].vector) for at, key in wished if key in held), key=lambda query: query[0]
        )
        opened = searches.openings()
        self._positives = [
            (held["news", news_id].vector, rows)
            for news_id, at in opened
            if ("news", news_id) in held and len(rows := _before(queries, at))
        ]
        ever = {news_id for news_id, _ in opened}
        ids, vectors = items
        self._others = vectors[[place for place, news_id in enumerate(ids) if news_id not in ever]]

    @property
    def available(self) -> int:
        """News that samples can be made of."""
        return len(self._positives) if len(self._others) else 0

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Samples drawn afresh. Raises ValueError if there is nothing to draw from, or for features, which a view
        doesn't have."""
        if features:
            raise ValueError(f"features: this view computes none, asked for {', '.join(features)}")
        if not self.available:
            raise ValueError("samples: nothing was opened from the results of a search yet")
        chosen = [self._positives[place] for place in rng.permutation(len(self._positives))[:limit]]
        users = [left_padded(rows) for _, rows in chosen]
        offered = [
            np.concatenate([clicked[None], self._others[rng.integers(len(self._others), size=negatives)]])
            for clicked, _ in chosen
        ]
        return Samples(
            clicks=np.concatenate([rows for rows, _ in users]),
            click_mask=np.concatenate([mask for _, mask in users]),
            candidates=np.stack(offered),
        )


def _before(queries: Sequence[TimedQuery], at: datetime) -> NDArray[np.float32]:
    rows = [vector for since, vector in queries if since <= at][-CLICKS_LIMIT:]
    return np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)
