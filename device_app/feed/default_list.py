"""The list that every device gets, ready to rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, nothing
from device_app.store.default_list import DefaultListStore, StoredDefaultList
from device_app.store.news import NewsStore


class DefaultList:
    """The default list as candidates; read from the store once a change, then from memory."""

    def __init__(self, page: DefaultListStore, store: NewsStore) -> None:
        self._page = page
        self._store = store
        self._read: tuple[StoredDefaultList, tuple[str, int | None], Candidates] | None = None

    def candidates(self, encoder: str, dimensions: int) -> Candidates:
        """News of the list that have a vector by `encoder`, in the list's order; empty before the first sync."""
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
        """Ids and vectors [n, D] of the list: the item set of training, the same for every view and every reader."""
        listed = self.candidates(encoder, 0)
        return tuple(card.id for card in listed.cards), listed.vectors

    def known(self) -> bool:
        """Whether there was a first sync."""
        return self._page.current() is not None
