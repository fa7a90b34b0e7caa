"""RSS and Atom feeds as news: what feedparser reads, each entry checked by itself."""

from __future__ import annotations

import calendar
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError

from backend.news.errors import OptionRefused, SourceMalformed
from backend.news.item import UNSORTED, NewsItem
from backend.news.report import Rejection, rejection
from backend.news.sources.download import Document, fetch
from backend.news.sources.feed_parser import ENTRIES_LIMIT, FeedUnreadable, ParsedFeed, parse
from backend.news.sources.links import canonical, news_id
from backend.news.sources.source import FeedLocation, SourceOption
from backend.picture_links import PictureLink, best_picture
from backend.plain_text import beginning, paragraphs, shortened
from backend.public_addresses import IpNetwork, networks

ABSTRACT_CHARS = 600
"""Longer summaries are the article itself: they become the body, and their beginning the abstract."""
TOPIC_ENTRIES = 3
"""A label of a feed is a topic where so many of its entries share it."""
NO_TOPICS = frozenset({"all", "general", "latest", "misc", "news", "none", "other", "top stories", "unknown"})
HARMLESS_FAULT = "undefined entity"
"""HTML's names such as &eacute;, which are read as they are meant."""


@dataclass(frozen=True)
class RssSource:
    """An RSS or Atom feed, at a URL or in a file. Raises OptionRefused for a network that is none."""

    name: ClassVar[str] = "rss"
    help: ClassVar[str] = (
        "RSS or Atom, from URLs or files; a feed that has not changed is not read again. A URL is followed: the server "
        "reads it again by itself."
    )

    location: Annotated[str, SourceOption("URLs or files of RSS or Atom feeds.", many=True)]
    allow_network: Annotated[
        tuple[str, ...],
        SourceOption("A network that is not public and may be fetched from all the same: 10.1.0.0/16."),
    ] = ()
    pictures: Annotated[
        bool, SourceOption("Its publisher's own pictures may be fetched and shown; a feed that has them keeps them.")
    ] = False

    def __post_init__(self) -> None:
        try:
            networks(self.allow_network)
        except ValueError as broken:
            raise OptionRefused("allow_network", str(broken)) from broken

    @property
    def title(self) -> str:
        """The feed's address, cut to 200 characters."""
        return self.location[:200]

    @property
    def feed(self) -> FeedLocation | None:
        """The feed's own address, for the server to follow."""
        return FeedLocation(self.location, self.allow_network, self.pictures)

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        """Its entries, as they stand now."""
        return read_rss(self.location, now=now, allowed=networks(self.allow_network))


def read_rss(
    location: str,
    *,
    now: datetime | None = None,
    allowed: Sequence[IpNetwork] = (),
    transport: httpx.BaseTransport | None = None,
) -> Iterator[NewsItem | Rejection]:
    """The news of a feed at an http or https URL or in a file, without remembering it (`backend.news.followed_feeds`
    does).

    now: the time of entries that give none, or one in the future; by default the present.
    Raises SourceUnreachable, SourceTooLarge, SourceMalformed.
    """
    document = fetch(location, allowed=allowed, transport=transport)
    assert isinstance(document, Document)  # only a conditional GET has none
    return read_feed(document, now=now or datetime.now(UTC))


def read_feed(document: Document, *, now: datetime, section: str | None = None) -> Iterator[NewsItem | Rejection]:
    """The news of a downloaded feed; a Rejection's line is the entry's place, from 1. Raises SourceMalformed.

    section: of all its news; None: each is sorted by its own vector.

    A document that is not well-formed is read as far as feedparser can; a last Rejection then says what is wrong.
    """
    try:
        parsed = parse(document.data, content_type=document.content_type, base=document.base)
    except FeedUnreadable as refused:
        raise SourceMalformed(document.location, str(refused)) from refused
    return _entries(document, parsed, now, section or UNSORTED)


def _entries(document: Document, parsed: ParsedFeed, now: datetime, section: str) -> Iterator[NewsItem | Rejection]:
    feed = _Feed.of(document, parsed, section)
    for number, entry in enumerate(parsed.entries, start=1):
        if entry["fault"] is None:
            yield _item(number, entry, feed, now)
        else:
            yield Rejection(number, "entry", f"can't be read ({entry['fault']})")
    after = len(parsed.entries) + 1
    if parsed.left_out:
        yield Rejection(after, "feed", f"{parsed.left_out:,} entries are beyond the limit of {ENTRIES_LIMIT:,}")
    if parsed.fault is not None and not parsed.fault.endswith(HARMLESS_FAULT):
        yield Rejection(after, "feed", f"is not well-formed ({parsed.fault}); what could be read was read")


class _Feed(NamedTuple):
    base: str
    publisher: str
    section: str
    topics: frozenset[str]

    @classmethod
    def of(cls, document: Document, parsed: ParsedFeed, section: str) -> _Feed:
        head, counts = parsed.head, Counter(label for entry in parsed.entries for label in entry["labels"])
        topics = frozenset(label for label, count in counts.items() if count >= TOPIC_ENTRIES)
        link = head["link"] or document.base
        base = document.base or link
        publisher = head["title"] or _host(link)
        return cls(base, shortened(publisher, 120), section, topics - {section, UNSORTED} - NO_TOPICS)


def _host(link: str) -> str:
    try:
        return urlsplit(link).hostname or ""
    except ValueError:
        return ""


def _item(number: int, entry: dict[str, Any], feed: _Feed, now: datetime) -> NewsItem | Rejection:
    link = entry["link"]
    if not link:
        return Rejection(number, "link", "missing")
    try:
        url = canonical(link, feed.base)
    except ValueError as error:
        return Rejection(number, "link", str(error))
    summary, body = entry["summary"], entry["content"]
    if len(summary) > ABSTRACT_CHARS and len(summary) > len(body):
        body = summary
    try:
        return NewsItem(
            id=news_id(url),
            title=entry["title"],
            abstract=beginning(summary or body, ABSTRACT_CHARS),
            body=paragraphs(body),
            url=url,
            publisher=feed.publisher,
            section=feed.section,
            topic=next((label for label in entry["labels"] if label in feed.topics), feed.section),
            published_at=_published(entry, now),
            picture=best_picture((PictureLink(*each) for each in entry["pictures"]), feed.base),
        )
    except ValidationError as error:
        return rejection(number, error)


def _published(entry: dict[str, Any], now: datetime) -> datetime:
    given = entry["published"]
    if given is None:
        return now
    try:
        moment = datetime.fromtimestamp(calendar.timegm((*given, 0, 0, 0)), UTC)
    except (ValueError, OverflowError, OSError):
        return now
    return min(moment, now)
