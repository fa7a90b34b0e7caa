"""Candidates as columns, so that nothing in the feed loops over them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from device_app.uplink.vectors import read_vectors
from device_app.wire.news import NewsCard
from device_app.wire.recall import RecallAnswer

Codes = NDArray[np.int64]
"""Names as 64-bit hashes: equal names have equal codes, and two of 10,000 names collide with probability 3e-12."""

NO_STORY = hash("")


@dataclass(frozen=True)
class Candidates:
    """n cards with their vectors [n, D] (float32), all of one encoder. Ids are unique."""

    cards: tuple[NewsCard, ...]
    vectors: NDArray[np.float32]
    encoder: str

    def __len__(self) -> int:
        return len(self.cards)

    @cached_property
    def ids(self) -> Codes:
        """Codes of the news ids, [n]."""
        return self._coded("id")

    @cached_property
    def topics(self) -> Codes:
        """Codes of the topics, [n]."""
        return self._coded("topic")

    @cached_property
    def sections(self) -> Codes:
        """Codes of the sections, [n]."""
        return self._coded("section")

    @cached_property
    def publishers(self) -> Codes:
        """Codes of the publishers, [n]."""
        return self._coded("publisher")

    @cached_property
    def stories(self) -> Codes:
        """Codes of the developing stories, [n]; NO_STORY for news of none."""
        return _codes((card.story or "" for card in self.cards), len(self))

    @cached_property
    def headlines(self) -> Codes:
        """Codes of the headlines without regard to case and outer white space, [n]."""
        return _codes((card.title.strip().casefold() for card in self.cards), len(self))

    @cached_property
    def published_sec(self) -> NDArray[np.float64]:
        """Publication times in seconds since 1970, [n]."""
        times = map(datetime.timestamp, map(attrgetter("published_at"), self.cards))
        return np.fromiter(times, dtype=np.float64, count=len(self))

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Editorial weights 0 to 1, [n]."""
        return np.fromiter(map(attrgetter("weight"), self.cards), dtype=np.float64, count=len(self))

    @cached_property
    def unit_vectors(self) -> NDArray[np.float32]:
        """Vectors of length 1 (or 0), [n, D]. Made only where all rows are needed: it is most of a feed's numbers."""
        return unit(self.vectors)

    def named(self, column: Codes, names: Iterable[str]) -> NDArray[np.bool_]:
        """[n]: which rows of a column of codes are among `names`."""
        wanted = {hash(name) for name in names}
        if not wanted:
            return np.zeros(len(column), dtype=bool)
        return np.fromiter(map(wanted.__contains__, column.tolist()), dtype=bool, count=len(column))

    def only(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        """These rows (indices in order, or a mask), with the columns that were made already."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        found = Candidates(tuple([self.cards[row] for row in chosen]), self.vectors.take(chosen, axis=0), self.encoder)
        found.__dict__.update({name: self.__dict__[name][chosen] for name in COLUMNS if name in self.__dict__})
        return found

    def _coded(self, field: str) -> Codes:
        return _codes(map(attrgetter(field), self.cards), len(self))


def candidates_of(answer: RecallAnswer, dimensions: int) -> Candidates:
    """The answer's cards with their vectors, without repeated ids. Raises AnswerMalformed."""
    found = Candidates(answer.candidates, read_vectors(answer, dimensions), answer.encoder)
    _, first = np.unique(found.ids, return_index=True)
    return found if len(first) == len(found) else found.only(np.sort(first))


def together(first: Candidates, second: Candidates) -> Candidates:
    """Both, without repeats; the rows of `first` come first. Of another encoder, `second` is left out.

    The columns of both are made here, once, and joined: answers and common lists live longer than a feed.
    """
    if not len(second) or second.encoder != first.encoder:
        return first
    if not len(first):
        return second
    for name in COLUMNS:
        getattr(second, name)
    new = second.only(~np.isin(second.ids, first.ids))
    joined = Candidates(first.cards + new.cards, np.concatenate([first.vectors, new.vectors]), first.encoder)
    joined.__dict__.update({name: np.concatenate([getattr(first, name), getattr(new, name)]) for name in COLUMNS})
    return joined


def nothing(encoder: str, dimensions: int) -> Candidates:
    """No candidates."""
    return Candidates((), np.zeros((0, dimensions), dtype=np.float32), encoder)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; rows of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


def _codes(names: Iterable[str], count: int) -> Codes:
    return np.fromiter(map(hash, names), dtype=np.int64, count=count)


COLUMNS = ("ids", "topics", "sections", "publishers", "stories", "headlines", "published_sec", "weights")
