"""What is popular among readers, as private counts tell it: a term of the score, and a list of its own."""

from __future__ import annotations

from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.columns import NO_STORY
from device_app.feed.exclusions import not_hidden
from device_app.feed.preferences import UserPreferences
from device_app.store.popularity import PopularityStore
from device_app.wire.news import NewsCard


class Popular:
    """Reads the store; values are from -1 to 1, and 0 for news of which nothing is known."""

    def __init__(self, store: PopularityStore) -> None:
        self._store = store

    def of(self, candidates: Candidates) -> NDArray[np.float64]:
        """[n]: half the log of how much more often each is clicked when displayed than news usually is."""
        kept = self._store.current()
        if kept is None or not kept.values:
            return np.zeros(len(candidates))
        values = kept.values
        return np.fromiter(
            (values.get(card.id, 0.0) for card in candidates.cards), dtype=np.float64, count=len(candidates)
        )

    def counted_at(self) -> datetime | None:
        """When the newest count behind it was opened; None before the first."""
        kept = self._store.current()
        return None if kept is None else kept.told.counted_at

    def now(self, known: Candidates, user_preferences: UserPreferences) -> tuple[NewsCard, ...]:
        """Popular news that are on this device, most popular first; one of each story, nothing the reader hides."""
        kept = self._store.current()
        if kept is None:
            return ()
        may = known.only(not_hidden(known, user_preferences))
        rows = {card.id: row for row, card in enumerate(may.cards)}
        told: set[int] = set()
        found: list[NewsCard] = []
        for news_id in kept.told.popular:
            row = rows.get(news_id)
            story = NO_STORY if row is None else int(may.stories[row])
            if row is None or story in told:
                continue
            if story != NO_STORY:
                told.add(story)
            found.append(may.cards[row])
        return tuple(found)
