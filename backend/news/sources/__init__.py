"""Sources of articles.

A new one is a file here and a line in SOURCES, from which `ownfeed ingest` is generated.
"""

from backend.news.sources.files import JsonLinesSource, MindSource
from backend.news.sources.newspaper import NewspaperSource
from backend.news.sources.rss import RssSource
from backend.news.sources.source import NewsSource

SOURCES: dict[str, type[NewsSource]] = {
    source.name: source for source in (NewspaperSource, RssSource, MindSource, JsonLinesSource)
}
"""Every kind of source by its command's name."""
