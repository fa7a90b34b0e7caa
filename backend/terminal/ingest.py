"""`ownfeed ingest`: ingests sources into the pool, with a progress bar for a person or JSON for a script."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import typer
from rich.console import Console
from sqlalchemy import Engine

from backend.db.engine import migrate, open_engine
from backend.news.errors import SourceError
from backend.news.feed_refresh import follow
from backend.news.followed_feeds import FollowedFeeds
from backend.news.ingest import Progress, ingest
from backend.news.item import IngestReport
from backend.news.pool import NewsPool
from backend.news.public_addresses import networks
from backend.news.sources.source import NewsSource
from backend.server.progress import steps
from backend.settings import BackendSettings


def ingest_sources(sources: Sequence[NewsSource], settings: BackendSettings, as_json: bool) -> bool:
    """Ingest sources into the pool and print the result of each; return whether all could be read.

    A source that fails is a line on standard error, and the others are still read.
    """
    engine = _opened(settings)
    refused = 0
    shown = steps(silent=as_json)
    for source in sources:
        try:
            with shown.step(f"Ingesting {source.title}") as advance:
                report = _take(source, engine, settings, lambda done, total, advance=advance: advance(done, total))
        except SourceError as failed:
            errors = Console(stderr=True, highlight=False, soft_wrap=True)
            errors.print(f"ownfeed: {failed}", markup=False, style="red")
            refused += 1
            continue
        _tell(report, source.title, as_json)
    return refused == 0


def _take(source: NewsSource, engine: Engine, settings: BackendSettings, progress: Progress) -> IngestReport | None:
    """Ingest one source into the pool; None if its server says that nothing has changed."""
    pool, now, feed = NewsPool(engine, keep_newest=settings.feed_keep_newest), datetime.now(UTC), source.feed
    if feed is None:
        return ingest(pool, source.read(now), source=source.title, progress=progress)
    allowed = networks(feed.networks or settings.feed_networks)
    again = now + timedelta(minutes=settings.feed_refresh_minutes)
    feeds = FollowedFeeds(engine)
    report = follow(pool, feeds, feed.location, now=now, due_at=again, progress=progress, allowed=allowed)
    if feed.pictures and "://" in feed.location:
        feeds.allow_pictures(feed.location, True)
    return report


def _opened(settings: BackendSettings) -> Engine:
    """The pool's database, created if missing."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    migrate(settings.database_url)
    return open_engine(settings.database_url)


def _tell(report: IngestReport | None, source: str, as_json: bool) -> None:
    """Print a report; None means that the source's server says nothing has changed."""
    if as_json:
        typer.echo(json.dumps({"source": source, "report": report.to_json() if report else None}))
    else:
        typer.echo(f"{source}: {report if report else 'not changed since the last time'}")
