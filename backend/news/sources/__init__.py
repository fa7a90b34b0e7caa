"""Sources of news. A new one is a file of its own here and a line in SOURCES, which `ownfeed ingest` is made from."""

from __future__ import annotations

from backend.news.sources.files import JsonLinesSource, MindSource
from backend.news.sources.newspaper import NewspaperSource
from backend.news.sources.rss import RssSource
from backend.news.sources.source import NewsSource

SOURCES: dict[str, type[NewsSource]] = {
    source.name: source for source in (NewspaperSource, RssSource, MindSource, JsonLinesSource)
}
"""Every kind of source by its command's name."""
