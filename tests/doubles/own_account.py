"""Computes what left a device from its database rows and its network traffic, without the code of its pages.

Costs of noisy sums are computed from the systems' published noise by dp-accounting, not read from the ledger.
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

from tests.doubles.opened_sums import NoisyOpening, SumNoise, spent_on
from tests.doubles.tapped_connection import TappedConnection

MEMBERS, NEWS = 10, 432
DELTA = 1e-6
COUNT_STEP, TRAINING_STEP = 2.0**-8, 2.0**-16
ONE_CLICK = math.sqrt(2 * (1 + (3 / 16) ** 2)) / COUNT_STEP + 1.5 * math.sqrt(32 + 5 + 2)
"""A click of weight 1 with its display of weight 3/16, exchanged for another; nonzero numbers may round apart."""
NOISE = {
    # A vector of at most 5 clicks and 32 displays; a gradient scaled into a ball of 0.1. Exchanging counts both.
    "private_counts/secure/huber": SumNoise(278, math.sqrt(2 * (5 + 32 * (3 / 16) ** 2)) / COUNT_STEP, 2 * NEWS),
    "one click of a count": SumNoise(278, ONE_CLICK, 2 * NEWS),
    "small_ranker/secure/median": SumNoise(4_900, 2 * 0.1 / TRAINING_STEP, 262),
}
DAY_LIMIT = {"reports": 8.0, "training": 0.0, "counts": 6.0}
LIFE_LIMIT = {"reports": 40.0, "training": None, "counts": None}
"""A device's defaults."""


def price(*systems: str, members: int = MEMBERS, deltas: float | None = None) -> float:
    """Epsilon of sums of these systems together, with this many real members, at DELTA each or at `deltas` in all."""
    if not systems:
        return 0.0
    openings = [NoisyOpening(NOISE[system], members) for system in systems]
    return spent_on(openings, DELTA if deltas is None else deltas)


@dataclass(frozen=True)
class OwnAccount:
    """One device's database, and the traffic between it and its backend.

    Read again for each question.
    """

    database: Path
    line: TappedConnection
    counted: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    """Rounds in which the test let the device take part."""

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of the reading view's database."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            return connection.execute(sql, values).fetchall()

    def number(self, sql: str, *values: object) -> int:
        """The first number of the first row."""
        return int(self.rows(sql, *values)[0][0])

    @property
    def codes(self) -> list[dict[str, Any]]:
        """Reports in the traffic, oldest first."""
        sent = [one for one in self.line.requests() if (one.method, one.path) == ("POST", "/v1/recall")]
        return [json.loads(one.body)["report"] for one in sent]

    @property
    def charges(self) -> dict[str, float]:
        """The cost of each channel: reports by the ledger's rows, sums by their noise."""
        by_channel = dict.fromkeys(DAY_LIMIT, 0.0)
        for channel, epsilon in self.rows("SELECT channel, total(epsilon) FROM charge GROUP BY channel"):
            by_channel[channel] = epsilon
        assert math.isclose(
            by_channel["counts"], len(self.counted) * price("private_counts/secure/huber"), rel_tol=1e-2
        )
        assert math.isclose(
            by_channel["training"], len(self.trained) * price("small_ranker/secure/median"), rel_tol=1e-2
        )
        return by_channel

    @property
    def times(self) -> Counter[str]:
        """How often each channel was charged."""
        return Counter(dict(self.rows("SELECT channel, count(*) FROM charge GROUP BY channel")))

    @property
    def sums(self) -> tuple[str, ...]:
        """The system of each noisy sum that this device contributed to."""
        return ("private_counts/secure/huber",) * len(self.counted) + ("small_ranker/secure/median",) * len(
            self.trained
        )

    def matches_the_line(self) -> bool:
        """Whether the log holds exactly the requests of the traffic, byte by byte (since an erase)."""
        log = Counter((bytes(head), bytes(body)) for head, body in self.rows("SELECT head, body FROM traffic"))
        line = Counter((one.head, one.body) for one in self.line.requests())
        return bool(log) and log == line if not self.erased else log <= line

    @property
    def erased(self) -> bool:
        """Whether the log begins later than the traffic."""
        return self.number("SELECT count(*) FROM traffic") < len(self.line.requests())


def local(us: int) -> datetime:
    """A time of the database, in this machine's time zone."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)).astimezone()


def utc_day(us: int) -> date:
    """The ledger's day of a time of the database."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)).date()
