"""Recall's answers that are the same for everybody until the catalogue changes: to a report by code, and the front
list."""

from __future__ import annotations

import gzip
import threading
from collections import OrderedDict
from datetime import datetime
from typing import NamedTuple
from weakref import ref as weak_ref

from backend.recall.catalogue import Catalogue

GZIP_LEVEL = 3
"""Bodies shrink to about 40 % at level 3 in a third of the time that level 9 takes for 37 %; lists to about half."""


class Asked(NamedTuple):
    """What an answer by code depends on besides the catalogue. compressed: by gzip, as most devices take it."""

    release: str
    codebook: str
    code: int
    limit: int
    compressed: bool = False


def compress(answer: bytes) -> bytes:
    """By gzip, without the time of day in it."""
    return gzip.compress(answer, GZIP_LEVEL, mtime=0)


class AnswerCache:
    """The last answers over one catalogue, as bytes, in so much memory. Safe from several threads.

    Holds nothing of anybody: an answer is the same whoever asked for it first.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes, self._held_bytes = limit_bytes, 0
        self._catalogue: weak_ref[Catalogue] | None = None  # which isn't held for its answers
        self._built_at: datetime | None = None
        self._answers: OrderedDict[Asked, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, catalogue: Catalogue, asked: Asked) -> bytes | None:
        """The answer, if it was given over this very catalogue."""
        with self._lock:
            found = self._answers.get(asked) if self._is_of(catalogue) else None
            if found is not None:
                self._answers.move_to_end(asked)
            return found

    def keep(self, catalogue: Catalogue, asked: Asked, answer: bytes) -> None:
        """Keep it instead of those that nobody has asked for the longest; over another catalogue, instead of all."""
        with self._lock:
            if not self._is_of(catalogue):
                if self._built_at is not None and catalogue.built_at < self._built_at:
                    return  # a search that began before the catalogue changed
                self._catalogue, self._built_at, self._held_bytes = weak_ref(catalogue), catalogue.built_at, 0
                self._answers.clear()
            if asked in self._answers:
                return
            self._answers[asked] = answer
            self._held_bytes += len(answer)
            while self._held_bytes > self._limit_bytes:
                _, oldest = self._answers.popitem(last=False)
                self._held_bytes -= len(oldest)

    def _is_of(self, catalogue: Catalogue) -> bool:
        return self._catalogue is not None and self._catalogue() is catalogue
