"""Lists other than the feed: the default list and popular articles.

The default list is what every device gets, ready to rank. Popularity comes from private counts; it is a term of the
score and also a list of its own.
"""

from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import NO_STORY, Candidates, nothing
from device_app.feed.exclusions import not_hidden
from device_app.feed.preference_reader import UserPreferences
from device_app.store.default_list import DefaultListStore, PopularityStore, StoredDefaultList
from device_app.store.news import NewsStore
from protocol.news import NewsCard


class DefaultList:
    """The default list as candidates.

    It is read from the store after each change, then cached in memory.
    """

    def __init__(self, page: DefaultListStore, store: NewsStore) -> None:
        self._page = page
        self._store = store
        self._read: tuple[StoredDefaultList, tuple[str, int | None], Candidates] | None = None

    def candidates(self, encoder: str, dimensions: int) -> Candidates:
        """Return the list's articles that have a vector by `encoder`, in order.

        Empty before the first sync.
        """
        kept = self._page.current()
        if kept is None:
            return nothing(encoder, dimensions)
        held, space = self._read, (encoder, self._store.width(encoder))
        if held is not None and held[0] == kept and held[1] == space:
            return held[2]
        cards = self._store.cards(kept.news_ids)
        present, vectors = self._store.vectors([card.id for card in cards], encoder)
        if not present.any():
            return nothing(encoder, dimensions)
        read = Candidates(
            tuple(card for card, here in zip(cards, present, strict=True) if here), vectors[present], encoder
        )
        self._read = (kept, space, read)
        return read

    def items(self, encoder: str) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        """Return ids and vectors [n, D] of the list, which are the items of training.

        They are the same for every view and every reader.
        """
        listed = self.candidates(encoder, 0)
        return tuple(card.id for card in listed.cards), listed.vectors

    def known(self) -> bool:
        """Return whether the first sync has taken place."""
        return self._page.current() is not None


class Popular:
    """Popularity of articles, between -1 and 1; 0 if nothing is known."""

    def __init__(self, store: PopularityStore) -> None:
        self._store = store

    def of(self, candidates: Candidates) -> NDArray[np.float64]:
        """Return half the log ratio of each article's click rate to the usual click rate, [n]."""
        kept = self._store.current()
        if kept is None or not kept.values:
            return np.zeros(len(candidates))
        values = kept.values
        return np.fromiter(
            (values.get(card.id, 0.0) for card in candidates.cards), dtype=np.float64, count=len(candidates)
        )

    def counted_at(self) -> datetime | None:
        """Return when the newest count was opened; None before the first."""
        kept = self._store.current()
        return None if kept is None else kept.received.counted_at

    def now(self, known: Candidates, user_preferences: UserPreferences) -> tuple[NewsCard, ...]:
        """Return popular articles on this device, most popular first, one per story.

        Leaves out what the reader hides.
        """
        kept = self._store.current()
        if kept is None:
            return ()
        may = known.only(not_hidden(known, user_preferences))
        rows = {card.id: row for row, card in enumerate(may.cards)}
        shown: set[int] = set()
        found: list[NewsCard] = []
        for news_id in kept.received.popular:
            row = rows.get(news_id)
            story = NO_STORY if row is None else int(may.stories[row])
            if row is None or story in shown:
                continue
            if story != NO_STORY:
                shown.add(story)
            found.append(may.cards[row])
        return tuple(found)
