"""Candidates as columns, so that nothing in the feed loops over them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from device_app.feed.columns import CardColumns, Codes, Columns
from device_app.uplink.answers import read_vectors
from device_app.wire.kinship import kinship_floor
from device_app.wire.news import NewsCard
from device_app.wire.recall import RecallAnswer


@dataclass(frozen=True)
class Candidates:
    """n cards with their vectors [n, D] (float32), all of one encoder. Ids are unique.

    known: the cards' columns where they were made already; else they are made when first asked for.
    """

    cards: tuple[NewsCard, ...]
    vectors: NDArray[np.float32]
    encoder: str
    known: Columns | None = None

    def __len__(self) -> int:
        return len(self.cards)

    @cached_property
    def columns(self) -> Columns:
        """All columns of the cards."""
        return Columns.of(self.cards) if self.known is None else self.known

    @property
    def ids(self) -> Codes:
        """Codes of the news ids, [n]."""
        return self.columns.ids

    @property
    def topics(self) -> Codes:
        """Codes of the topics, [n]."""
        return self.columns.topics

    @property
    def sections(self) -> Codes:
        """Codes of the sections, [n]."""
        return self.columns.sections

    @property
    def publishers(self) -> Codes:
        """Codes of the publishers, [n]."""
        return self.columns.publishers

    @property
    def stories(self) -> Codes:
        """Codes of the developing stories, [n]; NO_STORY for news of none."""
        return self.columns.stories

    @property
    def headlines(self) -> Codes:
        """Codes of the headlines without regard to case and outer white space, [n]."""
        return self.columns.headlines

    @property
    def published_sec(self) -> NDArray[np.float64]:
        """Publication times in seconds since 1970, [n]."""
        return self.columns.published_sec

    @property
    def weights(self) -> NDArray[np.float64]:
        """Editorial weights 0 to 1, [n]."""
        return self.columns.weights

    @cached_property
    def unit_vectors(self) -> NDArray[np.float32]:
        """Vectors of length 1 (or 0), [n, D]. Made only where all rows are needed: it is most of a feed's numbers."""
        return unit(self.vectors)

    @cached_property
    def kinship_floor(self) -> float | None:
        """The cosine that random pairs of these hardly ever have (wire.kinship)."""
        return kinship_floor(self.vectors)

    def named(self, column: Codes, names: Iterable[str]) -> NDArray[np.bool_]:
        """[n]: which rows of a column of codes are among `names`."""
        wanted = {hash(name) for name in names}
        if not wanted:
            return np.zeros(len(column), dtype=bool)
        return np.fromiter(map(wanted.__contains__, column.tolist()), dtype=bool, count=len(column))

    def only(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        """These rows (indices in order, or a mask)."""
        chosen = np.asarray(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows, dtype=np.intp)
        cards = tuple([self.cards[row] for row in chosen])
        return Candidates(cards, self.vectors.take(chosen, axis=0), self.encoder, self.columns.take(chosen))


def candidates_of(answer: RecallAnswer, dimensions: int, columns: CardColumns) -> Candidates:
    """The answer's cards with their vectors, without repeated ids; columns remembers those of cards met before.

    Raises AnswerMalformed.
    """
    vectors, cards = read_vectors(answer, dimensions), answer.candidates
    first = {card.id: row for row, card in reversed(list(enumerate(cards)))}
    if len(first) < len(cards):
        rows = sorted(first.values())
        vectors, cards = vectors[rows], tuple([cards[row] for row in rows])
    return Candidates(cards, vectors, answer.encoder, columns.of(cards))


def together(first: Candidates, second: Candidates) -> Candidates:
    """Both, without repeats; the rows of `first` come first. Of another encoder, `second` is left out."""
    if not len(second) or second.encoder != first.encoder:
        return first
    if not len(first):
        return second
    new = second.only(~np.isin(second.ids, first.ids))
    vectors = np.concatenate([first.vectors, new.vectors])
    return Candidates(first.cards + new.cards, vectors, first.encoder, first.columns.joined(new.columns))


def nothing(encoder: str, dimensions: int) -> Candidates:
    """No candidates."""
    return Candidates((), np.zeros((0, dimensions), dtype=np.float32), encoder)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; rows of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
