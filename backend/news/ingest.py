"""Ingests a source into the pool, batch by batch."""

import logging
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from backend.db.statements import chunks
from backend.news.feed_addresses import is_feed
from backend.news.ingest_runs import FeedAnswer
from backend.news.item import IngestReport, NewsItem, Rejection, total
from backend.news.pool import NewsPool

ROWS_PER_BATCH = 1_000

_log = logging.getLogger(__name__)


class Progress(Protocol):
    """Receives the number of processed rows.

    `total` is None if the source does not say how many there are.
    """

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
    """Add the rows of a source to the pool; malformed rows are counted and listed, never fatal.

    Each batch is one transaction, including near-duplicate links: a killed process leaves only whole batches, and
    running the same source again completes the work. How rows are split into batches does not affect the pool.

    oldest: articles published before it are withheld, so that a feed that still lists expired articles does not bring
    them back; `pool.horizon(now)` is the natural value. A feed's newest are added at any age.

    Raises what the source raises (after recording the failed run); earlier batches stay.
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be at least 1, got {batch_rows}")
    started = time.perf_counter()
    so_far = IngestReport()
    done = 0
    newest: set[str] = set()
    if oldest is not None and is_feed(source):
        rows = list(rows)
        newest = pool.among_newest(source, [row for row in rows if isinstance(row, NewsItem)])
    read_before = pool.has_any_of(source)
    try:
        for batch in chunks(rows, batch_rows):
            rejected = [row for row in batch if isinstance(row, Rejection)]
            items = [row for row in batch if isinstance(row, NewsItem)]
            wanted = [item for item in items if oldest is None or item.published_at >= oldest or item.id in newest]
            refused = IngestReport(withheld=len(items) - len(wanted), rejected=rejected, rejected_count=len(rejected))
            stored = pool.add(wanted, source=source, read_before=read_before) if wanted else IngestReport()
            so_far = total((so_far, refused, stored), seconds=time.perf_counter() - started)
            done += len(batch)
            if progress is not None:
                progress(done, rows_total)
    except BaseException as error:
        pool.log(source, so_far, failure=f"{type(error).__name__}: {error}")
        raise
    finished = total((so_far,), seconds=time.perf_counter() - started)
    pool.log(source, finished)
    if is_feed(source) and (answer := FeedAnswer.of(finished)).refused:
        _log.warning("%s: %s", source, answer)
    return finished
