"""Columns of cards met before: answers mostly repeat old cards, and hashing their words is most of making columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import COLUMNS, Candidates
from device_app.wire.news import NewsCard

CARDS_KEPT = 8_000


class CardColumns:
    """Fills in the columns of candidates, from memory where their very card objects came before.

    `uplink.known_cards` gives the same object for the same card. Beyond CARDS_KEPT it starts afresh.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop all cards and their columns."""
        self._cards: list[NewsCard] = []  # held, so that no other card can come to have the identity of one of these
        self._row: dict[int, int] = {}
        self._columns: dict[str, NDArray[np.generic]] = {}

    def fill(self, candidates: Candidates) -> None:
        """Give `candidates` all of its columns."""
        if not len(candidates):
            return
        new = self._new(candidates.cards)
        if len(self._cards) + len(new) > CARDS_KEPT:
            self.forget()
            new = list(candidates.cards)
        if new:
            self._add(new)
        rows = np.fromiter(map(self._row.__getitem__, map(id, candidates.cards)), dtype=np.intp, count=len(candidates))
        candidates.__dict__.update({name: column[rows] for name, column in self._columns.items()})

    def _new(self, cards: Sequence[NewsCard]) -> list[NewsCard]:
        return [card for card in cards if id(card) not in self._row]

    def _add(self, cards: Sequence[NewsCard]) -> None:
        added = Candidates(tuple(cards), np.zeros((len(cards), 0), dtype=np.float32), "")
        for name in COLUMNS:
            column = getattr(added, name)
            self._columns[name] = np.concatenate([self._columns[name], column]) if self._cards else column
        self._row.update(zip(map(id, cards), range(len(self._cards), len(self._cards) + len(cards)), strict=True))
        self._cards.extend(cards)
