"""Eight features of each candidate, from what came strictly before its impression.

Counts cover the clicks of all readers; a device knows the age of an article and its own reader's clicks and displays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.ebnerd import EbNerd
from experiments.datasets.mind import RaggedArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

HOUR = 3_600
WINDOWS_HOURS = (1, 6, 24)
COUNTS = tuple(f"clicks_{hours}h" for hours in WINDOWS_HOURS)
OWN = ("age", "freshness", "own_clicks", "own_skips", "own_displays_1h")
FEATURES = COUNTS + OWN
HALF_LIFE_HOURS = 24.0
LOG_SCALE = 5.0
"""Divisor of logs of counts and of hours, which brings them to about 0 to 1."""


@dataclass(frozen=True)
class Events:
    """Times of events by key, to count the events of key i before time t.

    keys and times_sec are int64 [n]; keys are at least 0.
    """

    keys: Integers
    times_sec: Integers

    @cached_property
    def _sorted(self) -> tuple[int, int, Integers]:
        """Return the first time, the span of the times, and the sorted codes of the events: key times span plus
        time.
        """
        if not len(self.keys):
            return 0, 1, self.keys
        first = int(self.times_sec.min())
        span = int(self.times_sec.max()) - first + 2
        return first, span, np.sort(self.keys * span + (self.times_sec - first))

    def before(self, keys: Integers, times_sec: Integers, window_sec: int | None = None) -> Integers:
        """Return the number of events of each key in [t - window, t), or in all time before t: int64 [m]."""
        found = self._earlier(keys, times_sec)
        return found if window_sec is None else found - self._earlier(keys, times_sec - window_sec)

    def _earlier(self, keys: Integers, times_sec: Integers) -> Integers:
        first, span, codes = self._sorted
        place = np.clip(times_sec - first, 0, span - 1)
        return np.searchsorted(codes, keys * span + place) - np.searchsorted(codes, keys * span)


@dataclass(frozen=True)
class Log:
    """Both weeks as one log of m impressions with n candidates, and all clicks.

    Args:
        users, times_sec: of each impression, [m].
        candidates: rows of the articles.
        clicked: 0 or 1 for each candidate, [n].
        test: whether an impression belongs to the second week, [m].
        earlier: users, articles and times of clicks before a reader's first week, each [k].
        counted: which of them count for everyone, [k]: those of the first week's readers.
        articles: the number of articles.
    """

    users: Integers
    times_sec: Integers
    candidates: RaggedArray
    clicked: Integers
    test: NDArray[np.bool_]
    earlier: tuple[Integers, Integers, Integers]
    counted: NDArray[np.bool_]
    articles: int

    @classmethod
    def of(cls, data: EbNerd) -> Log:
        """Join the weeks.

        A history of the second week is used only for readers who aren't in the first, as the others' clicks would be
        counted twice.
        """
        weeks = (data.train, data.validation)
        known = np.union1d(data.train.users, data.train.history_users)
        kept = (np.ones(len(data.train.history_users), bool), ~np.isin(data.validation.history_users, known))

        def joined(name: str) -> Integers:
            return np.concatenate([getattr(week, name)[rows] for week, rows in zip(weeks, kept, strict=True)])

        return cls(
            np.concatenate([week.users for week in weeks]),
            np.concatenate([week.times_sec for week in weeks]),
            RaggedArray.of([row for week in weeks for row in week.candidates]),
            np.concatenate([week.clicked for week in weeks]),
            np.repeat([False, True], [len(week) for week in weeks]),
            (joined("history_users"), joined("history_articles"), joined("history_times_sec")),
            np.repeat([True, False], [int(rows.sum()) for rows in kept]),
            len(data.articles),
        )

    @cached_property
    def owners(self) -> Integers:
        """Return the impression of each candidate, [n]."""
        return self.candidates.owners

    @cached_property
    def clicks(self) -> tuple[Integers, Integers, Integers]:
        """Return users, articles and times of the counted clicks: of both weeks, and of the first week's readers before
        it.
        """
        rows = self.clicked == 1
        own = self.owners[rows]
        here = (self.users[own], self.candidates.values[rows], self.times_sec[own])
        before = [each[self.counted] for each in self.earlier]
        return tuple(np.concatenate(pair) for pair in zip(before, here, strict=True))  # type: ignore[return-value]

    @cached_property
    def first_seen_sec(self) -> Integers:
        """Return the time of each article's first click or display, [articles]; the largest integer if there is
        none.
        """
        found = np.full(self.articles, np.iinfo(np.int64).max)
        np.minimum.at(found, self.candidates.values, self.times_sec[self.owners])
        np.minimum.at(found, self.earlier[1], self.earlier[2])
        return found


def own_features(log: Log) -> Floats:
    """Return the features that a device computes by itself, [n, 5], in the order of OWN.

    An article that was never seen before the impression has age 0.
    """
    news, times, users = log.candidates.values, log.times_sec[log.owners], log.users[log.owners]
    ages_hours = np.maximum(times - log.first_seen_sec[news], 0) / HOUR
    pairs = users * log.articles + news
    read = [np.concatenate(each) for each in zip(log.earlier, _clicks_here(log), strict=True)]
    clicks = Events(read[0] * log.articles + read[1], read[2]).before(pairs, times)
    displays = Events(pairs, times)
    skipped = Events(pairs[log.clicked == 0], times[log.clicked == 0]).before(pairs, times)
    return np.stack(
        [
            np.log1p(ages_hours) / LOG_SCALE,
            0.5 ** (ages_hours / HALF_LIFE_HOURS),
            np.log1p(clicks) / LOG_SCALE,
            np.log1p(skipped) / LOG_SCALE,
            np.log1p(displays.before(pairs, times, HOUR)) / LOG_SCALE,
        ],
        axis=1,
    )


def plain_counts(log: Log, windows_hours: Sequence[int] = WINDOWS_HOURS) -> Floats:
    """Return log(1 + clicks of all readers) in each window before the impression, to the second: [n, windows]."""
    _, news, at = log.clicks
    events = Events(news, at)
    times = log.times_sec[log.owners]
    found = [np.log1p(events.before(log.candidates.values, times, hours * HOUR)) for hours in windows_hours]
    return np.stack(found, axis=1) / LOG_SCALE


def _clicks_here(log: Log) -> tuple[Integers, Integers, Integers]:
    rows = log.clicked == 1
    own = log.owners[rows]
    return log.users[own], log.candidates.values[rows], log.times_sec[own]
