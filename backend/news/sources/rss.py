"""RSS and Atom feeds, read with feedparser after the dangerous parts of XML have been refused."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from time import struct_time
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from xml.parsers import expat

import feedparser
import httpx
from feedparser.encodings import convert_to_utf8
from pydantic import ValidationError

from backend.news.errors import SourceMalformed
from backend.news.item import NewsItem
from backend.news.report import Rejection, rejection
from backend.news.sources.download import Document, fetch
from backend.news.sources.links import canonical, news_id
from backend.news.sources.text import one_line, paragraphs, plain, shortened

ABSTRACT_CHARS = 600
"""Longer summaries are the article itself: they become the body, and their beginning the abstract."""
FEED_ROOTS = frozenset({"rss", "rdf", "feed"})
DEFAULT_SECTION = "news"
LABEL_CHARS = 80


def read_rss(
    location: str, *, now: datetime | None = None, transport: httpx.BaseTransport | None = None
) -> Iterator[NewsItem | Rejection]:
    """The news of a feed at an http or https URL or in a file, without remembering it (`backend.news.feeds` does).

    now: the time of entries that give none, or one in the future; by default the present.
    Raises SourceUnreachable, SourceTooLarge, SourceMalformed.
    """
    document = fetch(location, transport=transport)
    assert document is not None  # only a conditional GET has no document
    return read_feed(document, now=now or datetime.now(UTC))


def read_feed(document: Document, *, now: datetime) -> Iterator[NewsItem | Rejection]:
    """The news of a downloaded feed; a Rejection's line is the entry's place, from 1. Raises SourceMalformed."""
    data = _safe_xml(document)
    parsed = feedparser.parse(BytesIO(data), response_headers={"content-type": "application/xml; charset=utf-8"})
    if parsed.bozo and not parsed.entries:
        raise SourceMalformed(document.location, f"is not well-formed XML ({parsed.get('bozo_exception')})")
    return _entries(document, parsed, now)


def _entries(document: Document, parsed: Any, now: datetime) -> Iterator[NewsItem | Rejection]:
    feed = _Feed.of(document, parsed.feed)
    for number, entry in enumerate(parsed.entries, start=1):
        yield _item(number, entry, feed, now)
    if parsed.bozo:
        broken = f"not well-formed after entry {len(parsed.entries)} ({parsed.get('bozo_exception')})"
        yield Rejection(len(parsed.entries) + 1, "feed", broken)


class _Feed(NamedTuple):
    base: str
    publisher: str
    categories: list[str]

    @classmethod
    def of(cls, document: Document, head: Any) -> _Feed:
        link = head.get("link") or document.base
        base = document.base or link
        publisher = one_line(plain(head.get("title", ""))) or (urlsplit(link).hostname or "")
        return cls(base, shortened(publisher, 120), _categories(head))


def _item(number: int, entry: Any, feed: _Feed, now: datetime) -> NewsItem | Rejection:
    link = entry.get("feedburner_origlink") or entry.get("link") or ""
    if not link:
        return Rejection(number, "link", "missing")
    try:
        url = canonical(link, feed.base)
    except ValueError as error:
        return Rejection(number, "link", str(error))
    summary = plain(entry.get("summary", ""))
    body = plain(next((part.get("value", "") for part in entry.get("content", ())), ""))
    if len(summary) > ABSTRACT_CHARS and len(summary) > len(body):
        body = summary
    labels = [*_categories(entry), *feed.categories, DEFAULT_SECTION]
    section = labels[0]
    try:
        return NewsItem(
            id=news_id(url),
            title=one_line(plain(entry.get("title", ""))),
            abstract=shortened(one_line(summary or body), ABSTRACT_CHARS),
            body=paragraphs(body),
            url=url,
            publisher=feed.publisher,
            section=section,
            topic=next((label for label in labels[1:] if label != section), section),
            published_at=_published(entry, now),
        )
    except ValidationError as error:
        return rejection(number, error)


def _categories(element: Any) -> list[str]:
    """Lower-case labels in the feed's order; 'Sport/Football' and 'Sport > Football' count as two."""
    terms = [tag.get("label") or tag.get("term") or "" for tag in element.get("tags", ())]
    parts = [part for term in terms if "://" not in term for part in term.replace(">", "/").split("/")]
    labels = (shortened(one_line(plain(part)).lower(), LABEL_CHARS) for part in parts)
    return list(dict.fromkeys(label for label in labels if label))


def _published(entry: Any, now: datetime) -> datetime:
    given: struct_time | None = entry.get("published_parsed") or entry.get("updated_parsed")
    if given is None:
        return now
    try:
        moment = datetime.fromtimestamp(calendar.timegm(given), UTC)
    except (ValueError, OverflowError, OSError):
        return now
    return min(moment, now)


class _FoundRoot(Exception):
    """The root element's name is known; the rest is feedparser's."""


def _safe_xml(document: Document) -> bytes:
    """The document in UTF-8, after checking that it is a feed without a document type (so without entities).

    feedparser then reads the very bytes that were checked. Raises SourceMalformed.
    """
    location = document.location
    data = document.data.lstrip()
    if not data:
        raise SourceMalformed(location, "is empty")
    headers = {"content-type": document.content_type} if document.content_type else {}
    data = bytes(convert_to_utf8(headers, data, {}))
    opening = data[:2_000].lower()
    if b"<!doctype html" in opening or b"<html" in opening:
        raise SourceMalformed(location, "is a web page (HTML), not a feed")

    def refuse(*_declaration: object) -> None:
        raise SourceMalformed(location, "declares a document type or entities, which are refused")

    def root(name: str, _attributes: object) -> None:
        raise _FoundRoot(name)

    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = root
    try:
        parser.Parse(data, True)
    except _FoundRoot as found:
        name = str(found).rpartition(":")[2].lower()
        if name not in FEED_ROOTS:
            raise SourceMalformed(location, f"is XML with the root <{found}>, neither RSS nor Atom") from None
        return data
    except expat.ExpatError as error:
        raise SourceMalformed(location, f"is neither RSS nor Atom ({error})") from error
    raise SourceMalformed(location, "has no root element")
