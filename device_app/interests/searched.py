"""The second view as one vector: what the reader searches for and follows, in the space of news vectors.

The device has no text encoder, so a search means what it finds here: the unit mean of its best matches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from device_app.store.news import NewsStore
from device_app.store.opinions import Stances
from device_app.store.search_index import SearchIndex
from device_app.store.searches import MeaningKind, Searches, SearchVector

MATCHES = 20
"""Best matches that make up a search's vector, or newest news a topic's."""
MADE_ANEW_AFTER = timedelta(hours=24)


class SearchedInterests:
    """The vectors of saved searches and followed topics, made from news on this device and kept in the view's store."""

    def __init__(
        self, searches: Searches, stances: Stances, index: SearchIndex, store: NewsStore, clock: Callable[[], datetime]
    ) -> None:
        self._searches, self._stances = searches, stances
        self._index, self._store, self._clock = index, store, clock

    def vector(self, encoder: str) -> NDArray[np.float32] | None:
        """The unit mean [D] over saved searches and followed topics; None if none of them means anything here."""
        wanted = self._wanted()
        if not wanted:
            return None
        held, width = self._fresh(encoder, wanted), self._store.width(encoder)
        # One kept under a release that gave this encoder another width says nothing under this one.
        rows = [held[key].vector for key in wanted if key in held and width in (None, len(held[key].vector))]
        return unit(np.stack(rows).mean(axis=0, dtype=np.float64)) if rows else None

    def names(self) -> frozenset[str]:
        """What stands in the view's store now, each by a name of its own: if one is missing later, it was deleted."""
        opened = (f"news {news_id}" for news_id, _ in self._searches.openings())
        return frozenset([*(f"{kind} {name}" for kind, name in self._wanted()), *opened])

    def refresh(self, encoder: str) -> None:
        """Bring every vector of the view's store up to this encoder, also those of news opened from results."""
        self._fresh(encoder, self._wanted())
        held = self._searches.meanings(encoder)
        for news_id, _ in self._searches.openings():
            if ("news", news_id) not in held:
                self.keep_opened(news_id, encoder)

    def keep_opened(self, news_id: str, encoder: str) -> None:
        """Keep the vector of news opened from results, if it's here."""
        if (mean := self._mean_of([news_id], encoder)) is not None:
            self._searches.keep_meaning(SearchVector("news", news_id, encoder, mean, self._clock()))

    def _wanted(self) -> list[tuple[MeaningKind, str]]:
        searches: list[tuple[MeaningKind, str]] = [("search", one.words) for one in self._searches.saved()]
        return searches + [("topic", name) for name, _ in self._stances.followed_topics()]

    def _fresh(self, encoder: str, wanted: Sequence[tuple[MeaningKind, str]]) -> dict[tuple[str, str], SearchVector]:
        held = dict(self._searches.meanings(encoder))
        now = self._clock()
        for kind, name in wanted:
            known = held.get((kind, name))
            if known is not None and now - known.made_at < MADE_ANEW_AFTER:
                continue
            mean = self._mean_of(self._matches(kind, name), encoder)
            if mean is None and known is not None:
                mean = known.vector  # nothing of it is in the store today; it means what it meant
            if mean is not None:
                held[kind, name] = SearchVector(kind, name, encoder, mean, now)
                self._searches.keep_meaning(held[kind, name])
        return held

    def _matches(self, kind: MeaningKind, name: str) -> list[str]:
        found = self._store.named("topic", name, MATCHES) if kind == "topic" else self._index.find(name, 2 * MATCHES)
        blocked = self._stances.blocked()
        if blocked:
            found = [
                card.id
                for card in self._store.cards(found)
                if not blocked & {("topic", card.topic), ("section", card.section), ("publisher", card.publisher)}
            ]
        return found[:MATCHES]

    def _mean_of(self, news_ids: Sequence[str], encoder: str) -> NDArray[np.float32] | None:
        if not news_ids:
            return None
        present, vectors = self._store.vectors(news_ids, encoder)
        return unit(vectors[present].mean(axis=0, dtype=np.float64)) if present.any() else None


def unit(vector: NDArray[np.float64]) -> NDArray[np.float32] | None:
    """Scaled to length 1; None for zeros, which point nowhere."""
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length, dtype=np.float32) if length > 0 else None
