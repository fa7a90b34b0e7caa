"""Keeps the last answer to a report, and how long a busy backend is left alone."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device_app.errors import BackendRefused
from device_app.feed.candidates import Candidates, candidates_of, together
from device_app.feed.columns import CardColumns
from device_app.privacy.sealed import Sealed
from device_app.wire.recall import RecallAnswer, RecallRequest

BUSY_RETRY_SEC = 5.0
"""Where a backend that has too much to do doesn't say when to come back."""
_CHANCE = random.SystemRandom()


@dataclass(frozen=True)
class _Kept:
    payload_sha256: str
    encoder: str
    at_sec: float
    answer: RecallAnswer
    found: Candidates


class RecallAnswers:
    """At most one answer is kept, with the columns of its cards and of the default list beside it."""

    def __init__(self, max_age_sec: float) -> None:
        """max_age_sec: an older answer is not used again unless the backend is too busy for another."""
        self._max_age_sec = max_age_sec
        self._columns = CardColumns()
        self.forget()

    def forget(self) -> None:
        """Drop the kept answer, its columns and the busy backend's wait."""
        self._kept: _Kept | None = None
        self._joined: tuple[Candidates, Candidates, Candidates] | None = None
        self._unfetched: tuple[RecallAnswer, NDArray[np.float32]] | None = None
        self._busy: BackendRefused | None = None
        self._busy_until_sec = 0.0
        self._columns.forget()

    def keep(self, report: Sealed[RecallRequest], encoder: str, answer: RecallAnswer, dimensions: int) -> Candidates:
        """The candidates of an answer just heard, which is kept from now on. Raises AnswerMalformed."""
        if self._kept is not None and self._kept.answer is answer:
            found = self._kept.found
        else:
            found = candidates_of(answer, dimensions, self._columns)
        self._busy = None
        self._kept = _Kept(report.sha256, encoder, time.monotonic(), answer, found)
        self._unfetched = (answer, found.vectors)
        return found

    def found(self) -> Candidates | None:
        """What the kept answer brought, whatever was asked."""
        return None if self._kept is None else self._kept.found

    def of(self, report: Sealed[RecallRequest], encoder: str, *, young: bool) -> Candidates | None:
        """What the kept answer to this very report brought; None if none is kept, or only one too old where young."""
        kept = self._kept
        if kept is None or kept.payload_sha256 != report.sha256 or kept.encoder != encoder:
            return None
        return None if young and time.monotonic() - kept.at_sec >= self._max_age_sec else kept.found

    def unfetched(self) -> tuple[RecallAnswer, NDArray[np.float32]] | None:
        """The answer whose texts nobody has asked for yet, with its vectors; given once."""
        found, self._unfetched = self._unfetched, None
        return found

    def joined(self, found: Candidates, default_list: Candidates) -> Candidates:
        """`together`, remembered: both live longer than a feed."""
        last = self._joined
        if last is None or last[0] is not found or last[1] is not default_list:
            whole = (
                default_list
                if len(default_list) and found.encoder != default_list.encoder
                else together(found, default_list)
            )
            last = self._joined = (found, default_list, whole)
        return last[2]

    def require_idle(self) -> None:
        """Raise the BackendRefused of a backend that asked to be left alone for longer than this."""
        if self._busy is not None and time.monotonic() < self._busy_until_sec:
            raise self._busy

    def note_busy(self, busy: BackendRefused) -> None:
        """Leave the backend alone for as long as it says, and a random time more, so that devices that were refused
        together don't come back together."""
        if busy is not self._busy:
            wait_sec = (busy.retry_after_sec or BUSY_RETRY_SEC) * (1 + _CHANCE.random())
            self._busy, self._busy_until_sec = busy, time.monotonic() + wait_sec
