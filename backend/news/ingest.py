"""Takes a source into the pool, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from backend.db.chunks import chunks
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.news.report import IngestReport, Rejection, total

ROWS_PER_BATCH = 1_000


class Progress(Protocol):
    """Hears how many rows are done; `total` is None where the source does not say how many there are."""

    def __call__(self, done: int, total: int | None) -> None: ...


def ingest(
    pool: NewsPool,
    rows: Iterable[NewsItem | Rejection],
    *,
    source: str,
    progress: Progress | None = None,
    rows_total: int | None = None,
    oldest: datetime | None = None,
    batch_rows: int = ROWS_PER_BATCH,
) -> IngestReport:
    """Adds the rows of a source to the pool; malformed ones are counted and listed, never fatal.

    Each batch is one transaction, near-duplicate links included: a process that dies leaves whole batches only, and
    running the same source again completes the work. How rows are cut into batches does not change the pool.

    oldest: news published before it are withheld, so that a feed that still lists expired news does not bring them
    back; `pool.horizon(now)` is the natural value.
    Raises what the source raises (after noting the failed run); earlier batches stay.
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be at least 1, got {batch_rows}")
    started = time.perf_counter()
    so_far = IngestReport()
    done = 0
    try:
        for batch in chunks(rows, batch_rows):
            rejected = [row for row in batch if isinstance(row, Rejection)]
            items = [row for row in batch if isinstance(row, NewsItem)]
            wanted = [item for item in items if oldest is None or item.published_at >= oldest]
            refused = IngestReport(withheld=len(items) - len(wanted), rejected=rejected, rejected_count=len(rejected))
            stored = pool.add(wanted, source=source) if wanted else IngestReport()
            so_far = total((so_far, refused, stored), seconds=time.perf_counter() - started)
            done += len(batch)
            if progress is not None:
                progress(done, rows_total)
    except BaseException as error:
        pool.log(source, so_far, failure=f"{type(error).__name__}: {error}")
        raise
    finished = total((so_far,), seconds=time.perf_counter() - started)
    pool.log(source, finished)
    return finished
