"""Records finished ingest runs, and how many entries of a feed's last document were taken or refused, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select, update

from backend.db.tables import FeedRow, IngestRow
from backend.news.item import KEPT_REASON_CHARS, KEPT_REJECTIONS, IngestReport, Rejection
from protocol.formatting import plural

OF_THE_FEED = "feed"
"""The field of a rejection that concerns the whole document, not one entry."""
GROUPS_KEPT = 10


class RefusedFor(NamedTuple):
    """A reason for which entries were refused, how many, and the position of the first; 0 for the document itself."""

    field: str
    reason: str
    entries: int
    first_entry: int

    def __str__(self) -> str:
        if not self.first_entry:
            return self.reason
        what = "" if self.field == "entry" else f"{self.field}: "
        return f"{what}{self.reason} ({self.entries:,} of them, the first is entry {self.first_entry:,})"


class FeedAnswer(NamedTuple):
    """The last document of a feed. entries: how many it had; taken: how many are in the pool; refused: how many could
    not be used. The others are past the horizon, taken down, or another feed's."""

    entries: int
    taken: int
    refused: int
    refusals: tuple[RefusedFor, ...] = ()

    @classmethod
    def of(cls, report: IngestReport) -> FeedAnswer:
        """The answer that a run reports, with the reasons of its listed rejections."""
        about_feed = sum(one.field == OF_THE_FEED for one in report.rejected)
        taken, refused = report.added + report.updated + report.unchanged, report.rejected_count - about_feed
        return cls(taken + report.withheld + refused, taken, refused, grouped(report.rejected))

    @property
    def is_unusable(self) -> bool:
        """Whether it has entries but none could be used."""
        return self.entries > 0 and self.refused == self.entries

    def __str__(self) -> str:
        reasons = "; ".join(map(str, self.refusals))
        if not self.entries:
            return f"answered, but has no entries{f': {reasons}' if reasons else ''}"
        if self.is_unusable:
            return f"answered, but none of its {plural(self.entries, 'entry', 'entries')} could be used: {reasons}"
        entries = plural(self.entries, "entry", "entries")
        if self.taken < self.entries:
            entries = f"{self.taken:,} of {entries} taken"
        if self.refused:
            return f"{entries}, {self.refused:,} could not be used: {reasons}"
        return f"{entries}; {reasons}" if reasons else entries


def grouped(rejections: Iterable[Rejection]) -> tuple[RefusedFor, ...]:
    """The reasons, most frequent first; those that differ only in numbers and quoted text are grouped."""
    groups: dict[tuple[str, str], RefusedFor] = {}
    for one in rejections:
        key = (one.field, re.sub(r"\d[\d,.]*|'[^']*'", "#", one.reason))
        line = 0 if one.field == OF_THE_FEED else one.line
        group = groups.get(key, RefusedFor(one.field, one.reason[:KEPT_REASON_CHARS], 0, line))
        groups[key] = group._replace(entries=group.entries + 1)
    return tuple(sorted(groups.values(), key=lambda group: -group.entries)[:GROUPS_KEPT])


def stored(answer: FeedAnswer) -> dict[str, Any]:
    """The answer as columns of `FeedRow`."""
    return answer._asdict() | {"refusals": [each._asdict() for each in answer.refusals]}


def loaded(entries: int | None, taken: int, refused: int, refusals: Iterable[Mapping[str, Any]]) -> FeedAnswer | None:
    """The answer stored in those columns; None before the first."""
    if entries is None:
        return None
    return FeedAnswer(entries, taken, refused, tuple(RefusedFor(**each) for each in refusals))


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """One run of a source, for the console; rejections are the first of `rejected` malformed rows, by line."""

    source: str
    finished_at: datetime
    seconds: float
    added: int
    updated: int
    unchanged: int
    duplicates: int
    withheld: int
    rejected: int
    failure: str | None
    rejections: tuple[Rejection, ...] = ()


def note_run(
    connection: Connection, source: str, report: IngestReport, failure: str | None, *, finished_at: datetime
) -> None:
    """Record a finished run with its first rejections, and the counts of a followed feed."""
    row = {
        "source": source,
        "finished_at": finished_at,
        "seconds": report.seconds,
        "added": report.added,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "duplicates": report.duplicates,
        "withheld": report.withheld,
        "rejected": report.rejected_count,
        "failure": failure,
        "rejections": [one.to_json() for one in report.rejected[:KEPT_REJECTIONS]],
    }
    connection.execute(insert(IngestRow), row)
    if failure is None:
        note_answer(connection, source, report)


def note_answer(connection: Connection, source: str, report: IngestReport) -> None:
    """Record the counts of a followed feed's document; does nothing for other sources."""
    connection.execute(update(FeedRow).where(FeedRow.key == source).values(stored(FeedAnswer.of(report))))


def last_runs(connection: Connection, limit: int) -> list[IngestSummary]:
    """The last runs, newest first."""
    columns = [getattr(IngestRow, name) for name in IngestSummary.__slots__]
    rows = connection.execute(select(*columns).order_by(IngestRow.number.desc()).limit(limit))
    return [
        IngestSummary(**{**row._mapping, "rejections": tuple(Rejection(**one) for one in row.rejections)})
        for row in rows
    ]
