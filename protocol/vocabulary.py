"""A release's vocabulary: how both ends split a text into words, and the id of each word.

Word-based article encoders read ids. A server and a device that split differently would train different rows of one
table, so the rule is exact to the character and needs only Python's standard library.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

PADDING = 0
UNKNOWN = 1
FIRST_WORD = 2
"""The id of the first word; V = FIRST_WORD + the number of words."""
WORDS_LIMIT = 200_000
WORD_LIMIT_CHARS = 40
HEADER = "ownfeed words 1"

_UNICODE = unicodedata.ucd_3_2_0
"""One fixed state of Unicode, as Python versions differ in newer characters; those separate words here."""
_ALONE = (range(0x3040, 0x3100), range(0x3400, 0xA000), range(0xF900, 0xFB00))
"""Kana and ideographs: their texts have no spaces, so each is a word."""


class _Known(dict[int, str]):
    """For str.translate: a space for each character that Unicode 3.2 lacks.

    Its case folding may still change.
    """

    def __missing__(self, code: int) -> str:
        self[code] = chr(code) if _UNICODE.category(chr(code)) != "Cn" else " "
        return self[code]


class _Apart(dict[int, str]):
    """For str.translate: spaces for what separates words, and around single-character words."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if _UNICODE.category(char)[0] not in "LMN":
            char = " "
        elif any(code in block for block in _ALONE):
            char = f" {char} "
        self[code] = char
        return char


_KNOWN, _APART = _Known(), _Apart()


class VocabularyDiffers(ValueError):
    """A vocabulary is not the required one.

    The message names the argument and what was expected.
    """

    def __init__(self, argument: str, expected: str, got: str) -> None:
        super().__init__(f"{argument} must be {expected}, got {got}")


def split_words(text: str) -> list[str]:
    """Return the words of a text, in order, case-folded and in form NFKC.

    A word is an unbroken run of letters, marks and digits, cut at WORD_LIMIT_CHARS, or one kana or ideograph; "don't"
    is two words. Splitting a single word returns that word.
    """
    known = _UNICODE.normalize("NFKC", text).translate(_KNOWN)
    folded = _UNICODE.normalize("NFKC", known.casefold())
    return [run[:WORD_LIMIT_CHARS] for run in folded.translate(_APART).split()]


@dataclass(frozen=True)
class WordVocabulary:
    """Words in the order of their ids, from FIRST_WORD on; 0 is padding, 1 any other word.

    Raises ValueError unless the words are distinct, at most WORDS_LIMIT, and words that `split_words` can return.
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.words) > WORDS_LIMIT:
            raise ValueError(f"words must be at most {WORDS_LIMIT:,}, got {len(self.words):,}")
        if len(self._ids) != len(self.words):
            raise ValueError("words must be distinct")
        for word in self.words:
            if split_words(word) != [word]:
                raise ValueError(f"words must be single words as texts are split, got {word!r}")

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words, start=FIRST_WORD)}

    @property
    def size(self) -> int:
        """V: the rows of a table of word vectors, including padding and unknown words."""
        return FIRST_WORD + len(self.words)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of `pack`, which is the hash of the release's blob `vocabulary`."""
        return hashlib.sha256(self.pack()).hexdigest()

    def encode(self, texts: Sequence[str], length: int) -> NDArray[np.int64]:
        """Return the first `length` words of each text: int64 [n, length], padding on the right."""
        if length < 1:
            raise ValueError(f"length must be at least 1, got {length}")
        ids = np.full((len(texts), length), PADDING, dtype=np.int64)
        for row, text in zip(ids, texts, strict=True):
            for place, word in zip(range(length), split_words(text), strict=False):
                row[place] = self._ids.get(word, UNKNOWN)
        return ids

    def pack(self) -> bytes:
        """Return the blob: a header line, then one word per line, UTF-8."""
        return "\n".join((HEADER, *self.words, "")).encode()

    @classmethod
    def unpack(cls, blob: bytes) -> WordVocabulary:
        """Read `pack`.

        Raises VocabularyDiffers for another format, ValueError for invalid words.
        """
        try:
            lines = blob.decode().split("\n")
        except UnicodeDecodeError as broken:
            raise VocabularyDiffers("vocabulary", "UTF-8 text", f"{len(blob):,} bytes that are not") from broken
        if lines[0] != HEADER or lines[-1] != "":
            raise VocabularyDiffers("vocabulary", f"lines after the header {HEADER!r}", repr(blob[:40]))
        return cls(tuple(lines[1:-1]))
