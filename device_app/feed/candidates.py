"""Candidates as columns, so that nothing in the feed loops over them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from device_app.uplink.vectors import read_vectors
from device_app.wire.news import NewsCard
from device_app.wire.recall import RecallAnswer


@dataclass(frozen=True)
class Candidates:
    """n cards with their vectors [n, D] (float32), all of one encoder. Ids are unique."""

    cards: tuple[NewsCard, ...]
    vectors: NDArray[np.float32]
    encoder: str

    def __len__(self) -> int:
        return len(self.cards)

    @cached_property
    def ids(self) -> NDArray[np.str_]:
        """News ids, [n]."""
        return np.array([card.id for card in self.cards], dtype=np.str_)

    @cached_property
    def published_sec(self) -> NDArray[np.float64]:
        """Publication times in seconds since 1970, [n]."""
        return np.array([card.published_at.timestamp() for card in self.cards], dtype=np.float64)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Editorial weights 0 to 1, [n]."""
        return np.array([card.weight for card in self.cards], dtype=np.float64)

    @cached_property
    def topics(self) -> NDArray[np.str_]:
        """Topics, [n]."""
        return np.array([card.topic for card in self.cards], dtype=np.str_)

    @cached_property
    def sections(self) -> NDArray[np.str_]:
        """Sections, [n]."""
        return np.array([card.section for card in self.cards], dtype=np.str_)

    @cached_property
    def publishers(self) -> NDArray[np.str_]:
        """Publishers, [n]."""
        return np.array([card.publisher for card in self.cards], dtype=np.str_)

    @cached_property
    def stories(self) -> NDArray[np.str_]:
        """Developing stories, [n]; '' for news of none."""
        return np.array([card.story or "" for card in self.cards], dtype=np.str_)

    @cached_property
    def unit_vectors(self) -> NDArray[np.float32]:
        """Vectors of length 1 (or 0), [n, D]."""
        return unit(self.vectors)

    def named(self, column: NDArray[np.str_], names: Iterable[str]) -> NDArray[np.bool_]:
        """[n]: which rows of a column of this table are among `names`."""
        return np.isin(column, list(names)) if len(self) else np.zeros(0, dtype=bool)

    def only(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        """These rows (indices in order, or a mask)."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Candidates(tuple(self.cards[row] for row in chosen), self.vectors[chosen], self.encoder)


def candidates_of(answer: RecallAnswer, dimensions: int) -> Candidates:
    """The answer's cards with their vectors, without repeated ids. Raises AnswerMalformed."""
    found = Candidates(answer.candidates, read_vectors(answer, dimensions), answer.encoder)
    _, first = np.unique(found.ids, return_index=True)
    return found if len(first) == len(found) else found.only(np.sort(first))


def together(first: Candidates, second: Candidates) -> Candidates:
    """Both, without repeats; the rows of `first` come first. Of another encoder, `second` is left out."""
    if not len(second) or second.encoder != first.encoder:
        return first
    known = {card.id for card in first.cards}
    new = np.array([row for row, card in enumerate(second.cards) if card.id not in known], dtype=np.intp)
    if not len(new):
        return first
    return Candidates(
        first.cards + tuple(second.cards[row] for row in new),
        np.concatenate([first.vectors, second.vectors[new]]),
        first.encoder,
    )


def nothing(encoder: str, dimensions: int) -> Candidates:
    """No candidates."""
    return Candidates((), np.zeros((0, dimensions), dtype=np.float32), encoder)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; rows of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
