"""Encoder inputs besides the title: an article's abstract, section and topic (NAML, LSTUR)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from protocol.releases import CategoryVocabulary
from protocol.words_of_titles import ABSTRACT_WORDS_LIMIT, PADDING


class NewsText(Protocol):
    """What a news encoder may read of an article, as stored in the pool.

    abstract: '' if its source gave none.
    """

    @property
    def title(self) -> str: ...

    @property
    def abstract(self) -> str: ...

    @property
    def section(self) -> str: ...

    @property
    def topic(self) -> str: ...


@dataclass(frozen=True)
class TitleAlone:
    """A text of which only the title is known."""

    title: str
    abstract: str = ""
    section: str = ""
    topic: str = ""


class BesidesTitles:
    """Converts articles to a graph's inputs.

    Args:
        tokenizer: the tokenizer's file, shared with titles; None for an encoder that reads no abstracts.
        categories: None for an encoder that reads no ids.
    """

    def __init__(self, tokenizer: Path | None, categories: CategoryVocabulary | None) -> None:
        self._categories = categories
        self._tokenizer = None if tokenizer is None else Tokenizer.from_file(str(tokenizer))
        if self._tokenizer is not None:
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(ABSTRACT_WORDS_LIMIT)

    def inputs(self, news: Sequence[NewsText]) -> dict[str, NDArray[np.int64]]:
        """Inputs by their name in the encoder's graph; those that it doesn't read are left out.

        `abstract_pieces` and `abstract_piece_mask` [n, L], L the longest abstract's length but at least 1; `category`
        and `subcategory` [n].
        """
        read: dict[str, NDArray[np.int64]] = {}
        if (abstracts := self.abstracts(news)) is not None:
            longest = max(1, int((abstracts != PADDING).sum(axis=1).max(initial=0)))
            read["abstract_pieces"] = np.ascontiguousarray(abstracts[:, :longest], dtype=np.int64)
            read["abstract_piece_mask"] = (read["abstract_pieces"] != PADDING).astype(np.int64)
        if (ids := self.category_ids(news)) is not None:
            columns = (np.ascontiguousarray(each, dtype=np.int64) for each in ids.T)
            read["category"], read["subcategory"] = columns
        return read

    def abstracts(self, news: Sequence[NewsText]) -> NDArray[np.int32] | None:
        """Rows of the word table [n, ABSTRACT_WORDS_LIMIT], PADDING after an abstract's end."""
        if self._tokenizer is None:
            return None
        found = np.full((len(news), ABSTRACT_WORDS_LIMIT), PADDING, dtype=np.int32)
        for row, encoded in enumerate(self._tokenizer.encode_batch([each.abstract for each in news])):
            found[row, : len(encoded.ids)] = encoded.ids
        return found

    def category_ids(self, news: Sequence[NewsText]) -> NDArray[np.int32] | None:
        """Ids of section and topic [n, 2], 0 for those unknown to the release."""
        if self._categories is None:
            return None
        both = self._categories.encode([(each.section, each.topic) for each in news])
        return np.stack(both, axis=1).astype(np.int32)
