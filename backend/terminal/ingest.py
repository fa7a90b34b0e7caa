"""`ownfeed ingest`: sources taken into the pool, with a bar for a person or JSON for a script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import typer
from rich.console import Console
from sqlalchemy import Engine

from backend.db.engine import migrate, open_engine
from backend.news.errors import SourceError
from backend.news.followed_feeds import FollowedFeeds, follow
from backend.news.ingest import ingest
from backend.news.item import NewsItem
from backend.news.pool import NewsPool
from backend.news.report import IngestReport, Rejection
from backend.news.sources.addresses import networks
from backend.progress import steps
from backend.settings import BackendSettings


def ingest_source(rows: Iterable[NewsItem | Rejection], source: str, settings: BackendSettings, as_json: bool) -> None:
    """Ingest one source and tell what became of it. Raises what the source raises."""
    pool = NewsPool(_opened(settings))
    with steps(silent=as_json).step(f"Ingesting {source}") as advance:
        report = ingest(pool, rows, source=source, progress=lambda done, total: advance(done, total))
    _tell(report, source, as_json)


def ingest_feeds(locations: Sequence[str], settings: BackendSettings, as_json: bool, console: Console) -> bool:
    """Ingest RSS or Atom feeds, URLs or files; whether all could be read. One that couldn't is a line on `console`."""
    engine = _opened(settings)
    pool, feeds = NewsPool(engine), FollowedFeeds(engine)
    allowed = networks(settings.feed_networks)
    refused = 0
    with steps(silent=as_json).step("Reading feeds") as advance:
        for done, location in enumerate(locations, start=1):
            try:
                report = follow(pool, feeds, location, now=datetime.now(UTC), allowed=allowed)
                _tell(report, location, as_json)
            except SourceError as failed:  # the other sources are read all the same
                console.print(f"ownfeed: {failed}", markup=False, style="red")
                refused += 1
            advance(done, len(locations))
    return refused == 0


def _opened(settings: BackendSettings) -> Engine:
    """The database of the pool, made if missing."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    migrate(settings.database_url)
    return open_engine(settings.database_url)


def _tell(report: IngestReport | None, source: str, as_json: bool) -> None:
    """None: the source's server says nothing has changed."""
    if as_json:
        typer.echo(json.dumps({"source": source, "report": report.to_json() if report else None}))
    else:
        typer.echo(f"{source}: {report if report else 'not changed since the last time'}")
