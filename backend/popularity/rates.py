"""What the counts say of the news of a catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.popularity.estimate import Counted, log_lifts
from device_app.wire.popularity import LIFT_REACH


@dataclass(frozen=True)
class Lifts:
    """version: the last counted round, 0 for none. values [n]: log of how much more often each piece of news is clicked
    when displayed than news usually is, from -LIFT_REACH to LIFT_REACH; 0 where nothing is known."""

    version: int
    values: NDArray[np.float32]


class Counts(Protocol):
    """The part of `backend.popularity.store.CountRepository` that is read here."""

    def version(self) -> int:
        """The last counted round."""
        ...

    def counted(self, numbers: NDArray[np.int64], now: datetime) -> tuple[Counted, NDArray[np.bool_]]:
        """Decayed sums, and which news were asked about."""
        ...


def lifts(counts: Counts | None, numbers: NDArray[np.int64], topics: Sequence[str], now: datetime) -> Lifts:
    """Of news with these numbers and topics, [n]."""
    version = 0 if counts is None else counts.version()
    if counts is None or not version or not len(numbers):
        return Lifts(version, np.zeros(len(numbers), dtype=np.float32))
    counted, asked = counts.counted(numbers, now)
    _, of_topic = np.unique(np.array(topics, dtype=object).astype(str), return_inverse=True)
    found = log_lifts(counted, of_topic.astype(np.int64), asked=asked)
    return Lifts(version, np.clip(found, -LIFT_REACH, LIFT_REACH).astype(np.float32))
