"""Follows RSS and Atom feeds: remembers what their servers said last, and takes what is new into the pool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import httpx
from sqlalchemy import Engine, delete, insert, select

from backend.db.engine import reading, writing
from backend.db.tables import FeedRow
from backend.news.ingest import Progress, ingest
from backend.news.pool import NewsPool
from backend.news.report import IngestReport
from backend.news.sources.addresses import Network
from backend.news.sources.download import Validators, fetch
from backend.news.sources.rss import read_feed


class FollowedFeeds:
    """The validators of each feed, for conditional GETs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def last(self, url: str) -> Validators:
        """What the feed's server said when it was last taken whole; empty for a feed never seen."""
        with reading(self._engine) as connection:
            row = connection.execute(
                select(FeedRow.etag, FeedRow.last_modified).where(FeedRow.url == url)
            ).one_or_none()
        return Validators() if row is None else Validators(row.etag, row.last_modified)

    def keep(self, url: str, validators: Validators, at: datetime) -> None:
        """Remembers the validators of a feed whose news are all in the pool."""
        row = {"url": url, "etag": validators.etag, "last_modified": validators.last_modified, "fetched_at": at}
        with writing(self._engine) as connection:
            connection.execute(delete(FeedRow).where(FeedRow.url == url))
            connection.execute(insert(FeedRow), row)


def follow(
    pool: NewsPool,
    feeds: FollowedFeeds,
    location: str,
    *,
    now: datetime,
    progress: Progress | None = None,
    allowed: Sequence[Network] = (),
    transport: httpx.BaseTransport | None = None,
) -> IngestReport | None:
    """Takes a feed (URL or file) into the pool; None if its server says that nothing has changed.

    The validators are kept only after every batch is committed: a run that fails is repeated in full.
    allowed, transport: as in `fetch`.
    Raises SourceError.
    """
    document = fetch(location, feeds.last(location), allowed=allowed, transport=transport)
    if document is None:
        return None
    rows = read_feed(document, now=now)
    report = ingest(pool, rows, source=location[:200], progress=progress, oldest=pool.horizon(now))
    if document.validators != Validators():
        feeds.keep(location, document.validators, now)
    return report
