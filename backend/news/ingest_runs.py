"""The finished ingest runs, as the console lists them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from backend.db.tables import FeedRow, IngestRow
from backend.news.feed_state import FeedAnswer, stored
from backend.news.item import KEPT_REJECTIONS, IngestReport, Rejection


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
    """Record a finished run with its first rejections, and of a followed feed what its document gave."""
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
    """Record what a followed feed's document gave; does nothing for other sources."""
    connection.execute(update(FeedRow).where(FeedRow.key == source).values(stored(FeedAnswer.of(report))))


def last_runs(connection: Connection, limit: int) -> list[IngestSummary]:
    """The last runs, newest first."""
    columns = [getattr(IngestRow, name) for name in IngestSummary.__slots__]
    rows = connection.execute(select(*columns).order_by(IngestRow.number.desc()).limit(limit))
    return [
        IngestSummary(**{**row._mapping, "rejections": tuple(Rejection(**one) for one in row.rejections)})
        for row in rows
    ]
