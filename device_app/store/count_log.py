"""A log of this device's contributions to private counts, so that none is made twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from device_app.store.database import Database
from device_app.store.rows import from_us, to_us

PASSED_OVER = "passed over until "
"""Stored in place of a round for a window that was spent without contributing anything."""


@dataclass(frozen=True)
class CountTaken:
    """One count that this device paid for.

    It covers the reader's displays and clicks after `since`, up to `until`.
    """

    round: str
    since: datetime
    until: datetime
    displayed: int
    clicked: int


@dataclass(frozen=True)
class CountWindow:
    """Displays and clicks after `since`, up to `until`: ids of articles, each once."""

    since: datetime
    until: datetime
    displayed: frozenset[str]
    clicked: frozenset[str]


class CountLog:
    """The time windows already spent.

    A display or click is in one window, however its round ends.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def window(self, now: datetime, longest: timedelta) -> CountWindow:
        """Return what may be contributed now.

        That is everything in feeds since the last window, but nothing older than `longest`. An article is displayed
        when it first comes into view in a feed; articles that never came into view are left out, since they would lower
        the click rate at the end of every page. Clicks outside feeds (from a search, say) are left out too: such
        displays aren't counted, so these clicks would raise the click rate.
        """
        with self._database.alone():
            spent = self._database.number("SELECT max(until) FROM count_taken")
            since_us, until_us = max(spent, to_us(now - longest)), to_us(now)
            displayed = self._database.rows(
                "SELECT DISTINCT news_id FROM impression WHERE viewed_at > ? AND viewed_at <= ?", (since_us, until_us)
            )
            clicked = self._database.rows(
                """SELECT DISTINCT click.news_id FROM click JOIN impression USING (feed_id, news_id)
                   WHERE click.at > ? AND click.at <= ?""",
                (since_us, until_us),
            )
        return CountWindow(
            from_us(since_us),
            from_us(until_us),
            frozenset(row[0] for row in displayed),
            frozenset(row[0] for row in clicked),
        )

    def take(self, taken: CountTaken) -> None:
        """Spend a window; call it in the transaction that charges.

        Raises ValueError if part of it is spent already.
        """
        with self._database.transaction():
            spent = self._database.number("SELECT max(until) FROM count_taken")
            if to_us(taken.since) < spent:
                raise ValueError(
                    f"since: {taken.since.isoformat()} is before {from_us(spent).isoformat()}, spent already"
                )
            self._database.write(
                "INSERT INTO count_taken (round, since, until, displayed, clicked) VALUES (?, ?, ?, ?, ?)",
                (taken.round, to_us(taken.since), to_us(taken.until), taken.displayed, taken.clicked),
            )

    def pass_over(self, until: datetime) -> None:
        """Spend everything up to `until` without contributing it.

        It may have been contributed before data was lost.
        """
        with self._database.transaction():
            spent = self._database.number("SELECT max(until) FROM count_taken")
            if spent < to_us(until):
                self.take(CountTaken(f"{PASSED_OVER}{until.isoformat()}", from_us(spent), until, 0, 0))

    def list(self, limit: int = 20) -> list[CountTaken]:
        """Counts paid for, newest first."""
        found = self._database.rows(
            "SELECT round, since, until, displayed, clicked FROM count_taken WHERE round NOT LIKE ? "
            "ORDER BY until DESC, round DESC LIMIT ?",
            (f"{PASSED_OVER}%", limit),
        )
        return [CountTaken(row[0], from_us(row[1]), from_us(row[2]), row[3], row[4]) for row in found]
