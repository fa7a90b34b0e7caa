"""The finished runs of sources, as the console lists them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from backend.db.tables import IngestRow
from backend.news.report import KEPT_REJECTIONS, IngestReport, Rejection


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """One run of a source, as the console lists it; rejections are the first of `rejected` malformed rows, by line."""

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
    """Note a finished run, with the first of its rejections."""
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


def last_runs(connection: Connection, limit: int) -> list[IngestSummary]:
    """The last runs, newest first."""
    columns = [getattr(IngestRow, name) for name in IngestSummary.__slots__]
    rows = connection.execute(select(*columns).order_by(IngestRow.number.desc()).limit(limit))
    return [
        IngestSummary(**{**row._mapping, "rejections": tuple(Rejection(**one) for one in row.rejections)})
        for row in rows
    ]
