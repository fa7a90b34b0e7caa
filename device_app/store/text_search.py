"""Search by words over what is on the device, in any script."""

from __future__ import annotations

import unicodedata

QUERY_WORDS_LIMIT = 16


def folded(text: str) -> str:
    """Text as it is compared: composed, without case."""
    return unicodedata.normalize("NFKC", text).casefold()


def all_words(text: str) -> tuple[list[str], list[str]]:
    """SQL tests and their values: news.words holds every word of `text` (the first sixteen of them)."""
    words = folded(text).split()[:QUERY_WORDS_LIMIT]
    return ["instr(news.words, ?) > 0"] * len(words), words
