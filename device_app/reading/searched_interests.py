"""The second view as one vector: what the reader searches for and follows.

The device has no text encoder, so a search is represented by its results on this device: the unit mean of its best
matches.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from device_app.store.news import NewsStore
from device_app.store.opinions import Stances
from device_app.store.searches import MeaningKind, Searches, SearchIndex, SearchVector

MATCHES = 20
"""Number of best matches in a search's vector, and of newest articles in a topic's."""
MADE_ANEW_AFTER = timedelta(hours=24)


class SearchedInterests:
    """Computes vectors of saved searches and followed topics from local articles.

    The view's store keeps them.
    """

    def __init__(
        self, searches: Searches, stances: Stances, index: SearchIndex, store: NewsStore, clock: Callable[[], datetime]
    ) -> None:
        self._searches, self._stances = searches, stances
        self._index, self._store, self._clock = index, store, clock

    def vector(self, encoder: str) -> NDArray[np.float32] | None:
        """Return the unit mean [D] over saved searches and followed topics.

        None if none has a vector.
        """
        wanted = self._wanted()
        if not wanted:
            return None
        held, width = self._fresh(encoder, wanted), self._store.width(encoder)
        # A vector stored when this encoder had another width is unusable now.
        rows = [held[key].vector for key in wanted if key in held and width in (None, len(held[key].vector))]
        return unit(np.stack(rows).mean(axis=0, dtype=np.float64)) if rows else None

    def names(self) -> frozenset[str]:
        """Return the unique names of all searches, topics and openings in the view's store.

        A name that is missing in a later call was deleted meanwhile.
        """
        opened = (f"news {news_id}" for news_id, _ in self._searches.openings())
        return frozenset([*(f"{kind} {name}" for kind, name in self._wanted()), *opened])

    def refresh(self, encoder: str) -> None:
        """Update the view's vectors by this encoder, including those of opened search results."""
        self._fresh(encoder, self._wanted())
        held = self._searches.meanings(encoder)
        for news_id, _ in self._searches.openings():
            if ("news", news_id) not in held:
                self.keep_opened(news_id, encoder)

    def keep_opened(self, news_id: str, encoder: str) -> None:
        """Store the vector of an article opened from search results, if it is here."""
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
                mean = known.vector  # no match is in the store today; keep the previous vector
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
    """Return the vector scaled to length 1, or None for zeros."""
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length, dtype=np.float32) if length > 0 else None
