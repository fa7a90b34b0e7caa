"""What a feed is ordered by besides vectors, as arrays over cards: ids, topics, sections, publishers, times, weights.

Rows of cards met before are kept: answers mostly repeat them, and hashing their words is most of the work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_app.wire.news import NewsCard

Codes = NDArray[np.int64]
"""Names as 64-bit hashes: equal names have equal codes, and two of 10,000 names collide with probability 3e-12."""

NO_STORY = hash("")
CARDS_KEPT = 8_000


@dataclass(frozen=True)
class Columns:
    """What the feed asks of n cards, each [n]; codes of names, times in seconds since 1970, weights 0 to 1."""

    ids: Codes
    topics: Codes
    sections: Codes
    publishers: Codes
    stories: Codes
    headlines: Codes
    published_sec: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, cards: Sequence[NewsCard]) -> Columns:
        """The columns of these cards. Headlines are compared without regard to case and outer white space."""
        times = map(datetime.timestamp, map(attrgetter("published_at"), cards))
        return cls(
            ids=_codes((card.id for card in cards), len(cards)),
            topics=_codes((card.topic for card in cards), len(cards)),
            sections=_codes((card.section for card in cards), len(cards)),
            publishers=_codes((card.publisher for card in cards), len(cards)),
            stories=_codes((card.story or "" for card in cards), len(cards)),
            headlines=_codes((card.title.strip().casefold() for card in cards), len(cards)),
            published_sec=np.fromiter(times, dtype=np.float64, count=len(cards)),
            weights=np.fromiter(map(attrgetter("weight"), cards), dtype=np.float64, count=len(cards)),
        )

    def take(self, rows: NDArray[np.intp]) -> Columns:
        """The columns of these rows only."""
        return Columns(**{name: column[rows] for name, column in self._all().items()})

    def joined(self, other: Columns) -> Columns:
        """These rows and then the other's."""
        both = zip(self._all().items(), other._all().values(), strict=True)
        return Columns(**{name: np.concatenate([mine, theirs]) for (name, mine), theirs in both})

    def _all(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class CardColumns:
    """Makes the columns of cards, from memory where these very objects came before.

    `uplink.answers` gives the same object for the same card. Beyond CARDS_KEPT it starts afresh.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop all cards and their columns."""
        self._cards: list[NewsCard] = []
        self._row: dict[str, int] = {}
        self._columns = Columns.of(())

    def of(self, cards: Sequence[NewsCard]) -> Columns:
        """The columns of these cards."""
        new = [card for card in cards if not self._knows(card)]
        if len(self._cards) + len(new) > CARDS_KEPT:
            self.forget()
            new = list(cards)
        if new:
            self._columns = self._columns.joined(Columns.of(new)) if self._cards else Columns.of(new)
            self._row.update({card.id: len(self._cards) + at for at, card in enumerate(new)})
            self._cards.extend(new)
        return self._columns.take(np.array([self._row[card.id] for card in cards], dtype=np.intp))

    def _knows(self, card: NewsCard) -> bool:
        row = self._row.get(card.id)
        return row is not None and self._cards[row] is card


def _codes(names: Iterable[str], count: int) -> Codes:
    return np.fromiter(map(hash, names), dtype=np.int64, count=count)
