"""Ingestion on both engines. Oracle: the ingested rows, counted by hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.db.engine import migrate, open_engine
from backend.news.ingest import ingest
from backend.news.item import LISTED_REJECTIONS, IngestReport, NewsItem, Rejection
from backend.news.pool import NewsPool

MakeItem = Callable[..., NewsItem]


def test_malformed_rows_are_listed_and_the_others_added(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    bad = Rejection(2, "title", "String should have at least 1 character")
    report = ingest(pool, [item("a"), bad, item("b")], source="test", batch_rows=2)
    assert (report.added, report.rejected, report.rejected_count) == (2, [bad], 1)
    assert "line 2: title: String should have at least 1 character" in str(report)
    assert report.to_json()["rejected"] == [{"line": 2, "field": "title", "reason": bad.reason}]
    assert [row.id for row in pool.live(now)] == ["a", "b"]


def test_flood_of_malformed_rows_is_counted_fully_and_listed_partly(pool: NewsPool) -> None:
    rows = (Rejection(line, "row", "not JSON") for line in range(1, LISTED_REJECTIONS + 11))
    report = ingest(pool, rows, source="test", batch_rows=300)
    assert (len(report.rejected), report.rejected_count) == (LISTED_REJECTIONS, LISTED_REJECTIONS + 10)
    assert str(report).endswith("and 10 more")
    assert pool.version() == 0


def test_progress_is_reported_after_each_batch(pool: NewsPool, item: MakeItem) -> None:
    received: list[tuple[int, int | None]] = []
    rows = [item(f"n{number}") for number in range(5)]
    ingest(
        pool, rows, source="t", batch_rows=2, rows_total=5, progress=lambda done, total: received.append((done, total))
    )
    assert received == [(2, 5), (4, 5), (5, 5)]


def test_source_failing_midway_keeps_complete_batches(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    def rows() -> Iterator[NewsItem]:
        yield from (item(f"n{number}") for number in range(5))
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        ingest(pool, rows(), source="test", batch_rows=2)
    assert [row.id for row in pool.live(now)] == ["n0", "n1", "n2", "n3"]
    (run,) = pool.ingests()
    assert (run.added, run.failure) == (4, "OSError: the disk is gone")


def test_articles_older_than_the_horizon_are_left_out(pool: NewsPool, item: MakeItem, now: datetime) -> None:
    rows = [item("old", minutes_old=90), item("young", minutes_old=30)]
    report = ingest(pool, rows, source="test", oldest=now - timedelta(hours=1))
    assert (report.added, report.withheld) == (1, 1)


def test_finished_runs_are_listed_newest_first(pool: NewsPool, item: MakeItem) -> None:
    ingest(pool, [item("a")], source="one")
    ingest(pool, [item("a"), item("b")], source="two")
    assert [(run.source, run.added, run.unchanged, run.failure) for run in pool.ingests()] == [
        ("two", 1, 1, None),
        ("one", 1, 0, None),
    ]


def test_first_fifty_rejected_rows_are_stored_with_their_run(pool: NewsPool) -> None:
    rows = [Rejection(line, "title", "missing" if line > 1 else "x" * 900) for line in range(1, 61)]
    ingest(pool, rows, source="one")
    ingest(pool, [], source="two")
    quiet, run = pool.ingests()
    assert quiet.rejections == ()
    assert run.rejected == 60
    assert [one.line for one in run.rejections] == list(range(1, 51))
    assert run.rejections[0].reason == "x" * 500
    assert run.rejections[49] == Rejection(50, "title", "missing")


def test_batch_size_zero_is_refused(pool: NewsPool) -> None:
    with pytest.raises(ValueError, match="batch_rows must be at least 1, got 0"):
        ingest(pool, [], source="test", batch_rows=0)


def test_empty_source_gives_an_empty_report(pool: NewsPool) -> None:
    report = ingest(pool, [], source="test")
    assert (report.changed, report.rejected_count) == (IngestReport().changed, 0)


ENDLESS = """
import sys
from datetime import UTC, datetime
from itertools import count
from backend.db.engine import open_engine
from backend.news.ingest import ingest
from backend.news.item import NewsItem
from backend.news.pool import NewsPool

now = datetime.now(UTC)
item = NewsItem(id="n", title="Title", body="text", section="x", topic="y", published_at=now)
rows = (item.model_copy(update={"id": f"n{n}", "title": f"Title {n}"}) for n in count())
ingest(NewsPool(open_engine(sys.argv[1])), rows, source="test", batch_rows=50)
"""


def test_killed_process_leaves_only_complete_batches(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'pool.db'}"
    migrate(url)
    root = Path(__file__).resolve().parents[4]
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, url], cwd=root, env=os.environ | {"PYTHONPATH": str(root)}
    )
    engine = open_engine(url)
    pool = NewsPool(engine)
    try:
        deadline = time.monotonic() + 60
        while len(pool.live(datetime.now(UTC))) < 150 and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    rows = pool.live(datetime.now(UTC))
    assert len(rows) >= 150
    assert len(rows) % 50 == 0
    assert [row.id for row in rows] == [f"n{number}" for number in range(len(rows))]
    assert len(pool.bodies(row.id for row in rows)) == len(rows)
    engine.dispose()
