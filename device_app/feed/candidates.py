"""Candidates and cards as columns (arrays), so that the feed needs no loop over them.

Columns hold the attributes other than vectors that order a feed: ids, topics, sections, publishers, times and weights.
The rows of known cards are cached, because answers mostly repeat cards and hashing their text is most of the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from device_app.uplink.backend_client import read_vectors
from protocol.news import NewsCard
from protocol.recall import RecallAnswer
from protocol.similarity import similarity_floor

Codes = NDArray[np.int64]
"""Names as 64-bit hashes: equal names have equal codes.

Among 10,000 names a collision has probability 3e-12.
"""

NO_STORY = hash("")
CARDS_KEPT = 8_000


@dataclass(frozen=True)
class Columns:
    """The attributes of n cards that a feed uses, each [n].

    Names are codes, times are in seconds since 1970, and weights lie between 0 and 1.
    """

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
        """Return the columns of these cards. Headlines ignore case and surrounding white space."""
        times = map(datetime.timestamp, map(attrgetter("counted_at"), cards))
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
        return Columns(**{name: column[rows] for name, column in self._all().items()})

    def joined(self, other: Columns) -> Columns:
        """Return these rows followed by the other's."""
        both = zip(self._all().items(), other._all().values(), strict=True)
        return Columns(**{name: np.concatenate([mine, theirs]) for (name, mine), theirs in both})

    def _all(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class CardColumns:
    """Makes the columns of cards, and caches those of card objects it has seen.

    `uplink.answers` gives the same object for the same card. The cache is emptied when it would exceed CARDS_KEPT.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Empty the cache."""
        self._cards: list[NewsCard] = []
        self._row: dict[str, int] = {}
        self._columns = Columns.of(())

    def of(self, cards: Sequence[NewsCard]) -> Columns:
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


@dataclass(frozen=True)
class Candidates:
    """n cards with their vectors [n, D] (float32), all from one encoder. Ids are unique.

    known: the cards' columns if they were already made; else they are made on first use.
    """

    cards: tuple[NewsCard, ...]
    vectors: NDArray[np.float32]
    encoder: str
    known: Columns | None = None

    def __len__(self) -> int:
        return len(self.cards)

    @cached_property
    def columns(self) -> Columns:
        return Columns.of(self.cards) if self.known is None else self.known

    @property
    def ids(self) -> Codes:
        """Codes of the article ids, [n]."""
        return self.columns.ids

    @property
    def topics(self) -> Codes:
        return self.columns.topics

    @property
    def sections(self) -> Codes:
        return self.columns.sections

    @property
    def publishers(self) -> Codes:
        return self.columns.publishers

    @property
    def stories(self) -> Codes:
        """Codes of the developing stories, [n]; NO_STORY for an article that belongs to none."""
        return self.columns.stories

    @property
    def headlines(self) -> Codes:
        """Codes of the headlines, ignoring case and surrounding white space, [n]."""
        return self.columns.headlines

    @property
    def published_sec(self) -> NDArray[np.float64]:
        """Publication times in seconds since 1970, [n]."""
        return self.columns.published_sec

    @property
    def weights(self) -> NDArray[np.float64]:
        """Editorial weights between 0 and 1, [n]."""
        return self.columns.weights

    @cached_property
    def unit_vectors(self) -> NDArray[np.float32]:
        """Vectors of length 1 (or 0), [n, D].

        Use it only if all rows are needed: vectors are most of a feed's data.
        """
        return unit(self.vectors)

    @cached_property
    def similarity_floor(self) -> float | None:
        """The cosine that random pairs of these candidates hardly ever reach (protocol.similarity)."""
        return similarity_floor(self.vectors)

    def named(self, column: Codes, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which rows of a column of codes are among `names`, [n]."""
        wanted = {hash(name) for name in names}
        if not wanted:
            return np.zeros(len(column), dtype=bool)
        return np.fromiter(map(wanted.__contains__, column.tolist()), dtype=bool, count=len(column))

    def only(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        """Return these rows only (indices in order, or a mask)."""
        chosen = np.asarray(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows, dtype=np.intp)
        cards = tuple([self.cards[row] for row in chosen])
        return Candidates(cards, self.vectors.take(chosen, axis=0), self.encoder, self.columns.take(chosen))


def candidates_of(answer: RecallAnswer, dimensions: int, columns: CardColumns) -> Candidates:
    """Return the answer's cards with their vectors, without duplicate ids.

    Raises AnswerMalformed. columns: the cache of columns of known cards.
    """
    vectors, cards = read_vectors(answer, dimensions), answer.candidates
    first = {card.id: row for row, card in reversed(list(enumerate(cards)))}
    if len(first) < len(cards):
        rows = sorted(first.values())
        vectors, cards = vectors[rows], tuple([cards[row] for row in rows])
    return Candidates(cards, vectors, answer.encoder, columns.of(cards))


def together(first: Candidates, second: Candidates) -> Candidates:
    """Return both without duplicates, `first` first; `second` is ignored if its encoder differs."""
    if not len(second) or second.encoder != first.encoder:
        return first
    if not len(first):
        return second
    new = second.only(~np.isin(second.ids, first.ids))
    vectors = np.concatenate([first.vectors, new.vectors])
    return Candidates(first.cards + new.cards, vectors, first.encoder, first.columns.joined(new.columns))


def nothing(encoder: str, dimensions: int) -> Candidates:
    """Return an empty set of candidates."""
    return Candidates((), np.zeros((0, dimensions), dtype=np.float32), encoder)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows scaled to length 1; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
