"""Names of people, places and firms in a card's words, told by their capitals."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from device_app.wire.news import NewsCard

TITLE_CASE_SHARE = 0.7
"""In a headline with so many of its words capitalised, capitals tell no name."""

CALENDAR = frozenset((*calendar.day_name, *calendar.month_name))
"""Capitals that name no one."""

SMALL_WORDS = frozenset({
    "of", "the", "de", "del", "della", "di", "da", "do", "dos", "das", "du", "des", "la", "le", "van", "von", "der",
    "den", "ter", "al", "el", "bin", "ibn", "y", "e",
})  # fmt: skip
"""Small letters that stand within names: "University of Leeds", "Maria de la Cruz"."""

NAMED_CARDS_KEPT = 4_096
"""Of so many cards the names are remembered: page after page asks for those of the same clicks and stories."""

_WORD = re.compile(r"[^\W\d_][\w’'-]*")
_BEFORE_SENTENCE = tuple('.!?:…“‘"(—–')


def proper_names(card: NewsCard) -> frozenset[str]:
    """Names of people, places, firms in title and abstract, by their capitals; none in scripts without capitals.

    Of a name of several words each two neighbours count ("Anna Maria Berg": "Anna Maria", "Maria Berg"), small words
    between them included ("Bank of Torgan" is one name, not two). A word that begins a sentence counts only beside
    another capital.
    """
    return _names_of(card.title, card.abstract)


def forget_names() -> None:
    """Drop what is remembered of cards' words."""
    _names_of.cache_clear()


@lru_cache(maxsize=NAMED_CARDS_KEPT)
def _names_of(title: str, abstract: str) -> frozenset[str]:
    return frozenset(_names_in(title) | _names_in(abstract)) - CALENDAR


def _names_in(text: str) -> set[str]:
    words = list(_WORD.finditer(text))
    capitals = [word.group()[0].isupper() for word in words]
    if len(words) >= 4 and sum(capitals) >= TITLE_CASE_SHARE * len(words):
        return set()
    found: set[str] = set()
    run: list[re.Match[str]] = []
    last = 0  # where the last word of the run ends, small ones that may lead on to a capital among them
    for word, capital in zip(words, capitals, strict=True):
        apart = text[last : word.start()] != " "
        if run and (apart or not (capital or word.group() in SMALL_WORDS)):
            found |= _named_by(run, text)
            run = []
        if capital:
            run.append(word)
        last = word.end()
    return found | _named_by(run, text)


def _named_by(run: Sequence[re.Match[str]], text: str) -> set[str]:
    if len(run) > 1:
        return {text[first.start() : second.end()] for first, second in pairwise(run)}
    return {word.group() for word in run if not _begins_sentence(text[: word.start()])}


def _begins_sentence(before: str) -> bool:
    """Whether what comes after `before` begins a sentence, or a quotation."""
    left = before.rstrip()
    return not left or left.endswith(_BEFORE_SENTENCE)
