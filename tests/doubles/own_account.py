"""What left a device, counted from its file's rows and from the line it sends on, without any of the code of its pages.

Prices of noisy sums are figured from the systems' published noise by dp-accounting, not read from the ledger.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.doubles.openings import NoisyOpening, SumNoise, spent_on
from tests.doubles.overheard_line import OverheardLine

MEMBERS, NEWS = 10, 432
DELTA = 1e-6
COUNT_STEP, TRAINING_STEP = 2.0**-8, 2.0**-16
ONE_CLICK = math.sqrt(2 * (1 + (3 / 16) ** 2)) / COUNT_STEP + 1.5 * math.sqrt(32 + 5 + 2)
"""A click of weight 1 with its display of weight 3/16, exchanged for another; whatever isn't 0 may be rounded apart."""
NOISE = {
    # A vector of at most 5 clicks and 32 displays; a gradient scaled into a ball of 0.1. Exchanging counts both.
    "private_counts": SumNoise(278, math.sqrt(2 * (5 + 32 * (3 / 16) ** 2)) / COUNT_STEP, 2 * NEWS),
    "one click of a count": SumNoise(278, ONE_CLICK, 2 * NEWS),
    "small_ranker_secure": SumNoise(4_900, 2 * 0.1 / TRAINING_STEP, 262),
}
DAY_LIMIT = {"reports": 8.0, "training": 0.0, "counts": 6.0}
LIFE_LIMIT = {"reports": 40.0, "training": None, "counts": None}
"""As a device comes."""


def price(*systems: str, members: int = MEMBERS, deltas: float | None = None) -> float:
    """Epsilon of sums of these systems together, with so many real members, at DELTA each or at `deltas` in all."""
    if not systems:
        return 0.0
    openings = [NoisyOpening(NOISE[system], members) for system in systems]
    return spent_on(openings, DELTA if deltas is None else deltas)


@dataclass(frozen=True)
class OwnAccount:
    """One device's file, and the line between it and its backend. Read anew for each question."""

    database: Path
    line: OverheardLine
    counted: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    """Rounds that the test has let the device take part in."""

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Of the reading view's file."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, values).fetchall()

    def number(self, sql: str, *values: object) -> int:
        """The first figure of the first row."""
        return int(self.rows(sql, *values)[0][0])

    @property
    def codes(self) -> list[dict[str, Any]]:
        """Reports that went over the line, oldest first, as they were read off it."""
        sent = [one for one in self.line.requests() if (one.method, one.path) == ("POST", "/v1/recall")]
        return [json.loads(one.body)["report"] for one in sent]

    @property
    def charges(self) -> dict[str, float]:
        """What each channel has cost: reports by the ledger's rows, sums by their noise."""
        by_channel = dict.fromkeys(DAY_LIMIT, 0.0)
        for channel, epsilon in self.rows("SELECT channel, total(epsilon) FROM charge GROUP BY channel"):
            by_channel[channel] = epsilon
        assert math.isclose(by_channel["counts"], len(self.counted) * price("private_counts"), rel_tol=1e-2)
        assert math.isclose(by_channel["training"], len(self.trained) * price("small_ranker_secure"), rel_tol=1e-2)
        return by_channel

    @property
    def times(self) -> Counter[str]:
        """How often each channel was charged."""
        return Counter(dict(self.rows("SELECT channel, count(*) FROM charge GROUP BY channel")))

    @property
    def sums(self) -> tuple[str, ...]:
        """The system of each noisy sum that this device gave to."""
        return ("private_counts",) * len(self.counted) + ("small_ranker_secure",) * len(self.trained)

    def matches_the_line(self) -> bool:
        """Whether the log holds each request that is on the line, to the byte, and no other (since an erase)."""
        log = Counter((bytes(head), bytes(body)) for head, body in self.rows("SELECT head, body FROM traffic"))
        line = Counter((one.head, one.body) for one in self.line.requests())
        return bool(log) and log == line if not self.erased else log <= line

    @property
    def erased(self) -> bool:
        """Whether the log begins later than the line."""
        return self.number("SELECT count(*) FROM traffic") < len(self.line.requests())


def local(us: int) -> datetime:
    """A time of the file, on the clock of this machine."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)).astimezone()


def utc_day(us: int) -> date:
    """The ledger's day of a time of the file."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)).date()
