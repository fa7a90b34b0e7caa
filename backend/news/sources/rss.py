"""RSS, Atom and JSON feeds as sources: reads the entries and fills in what they lack.

An entry without a title gets the beginning of its text; without a link, that of its enclosure or its site; without a
date, its time of arrival (`NewsItem.dated`). Only an entry with no title, text or link is rejected.

An entry is identified by the feed and its guid; without a guid, by its link, or by its text. A guid or link that
several different entries share doesn't identify any. Which ones are shared depends on the entries that a feed lists at
the moment, so an id that the pool has already is preferred to a new one.
"""

from __future__ import annotations

import calendar
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, NamedTuple
from urllib.parse import unquote, urlsplit

import httpx
from pydantic import ValidationError

from backend.news.errors import OptionRefused, SourceMalformed
from backend.news.feed_addresses import source_of
from backend.news.item import TITLE_LIMIT_CHARS, UNSORTED, NewsItem, Rejection, rejection
from backend.news.plain_text import beginning, shortened
from backend.news.public_addresses import IpNetwork, networks
from backend.news.sources.download import Document, fetch
from backend.news.sources.feed_parser import ENTRIES_LIMIT, FeedUnreadable, ParsedFeed, parse
from backend.news.sources.links import canonical
from backend.news.sources.picture_links import MediaLink, PictureLink, best_picture
from backend.news.sources.source import FeedLocation, SourceOption
from protocol.bodies import (
    BODY_CHARS,
    TEXT_PICTURES_LIMIT,
    Piece,
    cut_body,
    escaped,
    is_of_form,
    read_body,
    text_of_body,
    write_body,
)
from protocol.links import leads_out

KnownTitles = Callable[[Collection[str]], Mapping[str, str]]
"""Returns the titles of those ids that the pool has."""
SHARED_BY = 3
"""At least this many entries with one guid, each with its own link and title, are different entries; two are one entry
listed twice."""


class EntryNames(NamedTuple):
    """What identifies an entry: its guid and canonical link ('' if missing), its title, and its whole text."""

    guid: str
    link: str
    title: str
    text: str


def entry_ids(
    feed: str, entries: Sequence[EntryNames], *, site: str = "", known: KnownTitles = lambda ids: {}
) -> list[str]:
    """The ids of a document's entries, in order; versions of the same entry have the same id.

    feed: the feed's own identity, such as `FeedRow.key`. site: the link of the feed's site, which identifies no entry.
    """
    guids, links = _identifying_guids(entries), _identifying_links(entries, site)
    wanted: list[tuple[str, list[str]]] = []
    for entry in entries:
        by_guid = _digest(feed, "guid", entry.guid)
        by_link = _digest(feed, "link", entry.link.partition("://")[2])
        by_both = _digest(feed, "link and title", f"{entry.link}\n{entry.title or entry.text}")
        by_text = _digest(feed, "text", f"{entry.title}\n{entry.text}")
        if entry.guid in guids:
            chosen, others = by_guid, [by_link] if entry.link in links else []
        elif entry.link in links:
            chosen, others = by_link, [by_both]
        elif entry.link:
            chosen, others = by_both, [by_link]
        else:
            chosen, others = by_text, []
        wanted.append((chosen, others))
    titles = known({one for chosen, others in wanted for one in (chosen, *others)})
    found = []
    for entry, (chosen, others) in zip(entries, wanted, strict=True):
        if chosen not in titles:
            chosen = next((one for one in others if titles.get(one, "") == entry.title != ""), chosen)
        found.append(chosen)
    return found


def _identifying_guids(entries: Sequence[EntryNames]) -> frozenset[str]:
    groups: dict[str, list[EntryNames]] = defaultdict(list)
    for entry in entries:
        groups[entry.guid].append(entry)
    return frozenset(guid for guid, group in groups.items() if guid and not _are_different(group, len(entries)))


def _are_different(group: Sequence[EntryNames], entries: int) -> bool:
    """Whether entries that share a guid are different ones, not one entry that the document lists twice."""
    links, titles = {entry.link for entry in group}, {entry.title or entry.text for entry in group}
    if len(group) == 1 or len(titles) == 1:
        return False
    if len(group) == entries:
        return len(links) > 1 or len(group) >= SHARED_BY or not links - {""}
    return len(group) >= SHARED_BY and len(links) == len(titles) == len(group)


def _identifying_links(entries: Sequence[EntryNames], site: str) -> frozenset[str]:
    titles: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        if entry.link:
            titles[entry.link][entry.title or entry.text] += 1
    return frozenset(link for link, shared in titles.items() if len(shared) == 1 and not _is_a_site(link, site))


def _is_a_site(link: str, site: str) -> bool:
    parts = urlsplit(link)
    return link == site or (parts.path in ("", "/") and not parts.query and not parts.fragment)


def _digest(feed: str, kind: str, value: str) -> str:
    return "e" + blake2b(f"{feed}\n{kind}\n{value}".encode(), digest_size=12).hexdigest()


ABSTRACT_CHARS = 600
"""A longer summary is taken as the article itself if it is longer than the content."""
TOPIC_ENTRIES = 3
"""A label of a feed becomes a topic if at least this many of its entries have it."""
NO_TOPICS = frozenset({"all", "general", "latest", "misc", "news", "none", "other", "top stories", "unknown"})
PUBLISHER_CHARS = 120
TITLE_FROM_TEXT_CHARS = 100
CLOCK_SKEW = timedelta(hours=14)
"""A date up to this far in the future means a wrong time zone and counts as now; a later one counts as missing."""
HARMLESS_FAULT = "undefined entity"
"""A fault that HTML's entity names such as &eacute; cause, which are read as intended."""


@dataclass(frozen=True)
class RssSource:
    """An RSS, Atom or JSON feed, at a URL or in a file. Raises OptionRefused for an invalid network."""

    name: ClassVar[str] = "rss"
    help: ClassVar[str] = (
        "RSS, Atom or JSON feeds, from URLs or files; an unchanged feed is not read again. A URL is followed: the "
        "server reads it again from time to time."
    )

    location: Annotated[str, SourceOption("URLs or files of RSS, Atom or JSON feeds.", many=True)]
    allow_network: Annotated[
        tuple[str, ...],
        SourceOption("A non-public network that may be fetched from, such as 10.1.0.0/16."),
    ] = ()
    pictures: Annotated[
        bool, SourceOption("Fetch and show its publisher's pictures; without it, a followed feed keeps its setting.")
    ] = False

    def __post_init__(self) -> None:
        try:
            networks(self.allow_network)
        except ValueError as broken:
            raise OptionRefused("allow_network", str(broken)) from broken

    @property
    def title(self) -> str:
        """What `source_of` returns for its location."""
        return source_of(self.location)

    @property
    def feed(self) -> FeedLocation | None:
        """The feed's own address, for the server to follow."""
        return FeedLocation(self.location, self.allow_network, self.pictures)

    def read(self, now: datetime) -> Iterator[NewsItem | Rejection]:
        """Its current entries."""
        return read_rss(self.location, now=now, allowed=networks(self.allow_network))


def read_rss(
    location: str,
    *,
    now: datetime | None = None,
    allowed: Sequence[IpNetwork] = (),
    transport: httpx.BaseTransport | None = None,
) -> Iterator[NewsItem | Rejection]:
    """The articles of a feed at a URL or in a file, without following it (`backend.news.feed_refresh` does).

    now: the time of entries without a date or with one in the future; by default the present. Raises
    SourceUnreachable, SourceTooLarge, SourceMalformed.
    """
    document = fetch(location, allowed=allowed, transport=transport)
    assert isinstance(document, Document)  # only a conditional GET returns anything else
    return read_feed(document, now=now or datetime.now(UTC))


class FeedHead(NamedTuple):
    """A feed's title, its site, and its declared update interval (ttl, sy:updatePeriod; 0: none)."""

    title: str
    site: str
    every_sec: float


def read_feed(
    document: Document,
    *,
    now: datetime,
    section: str | None = None,
    key: str = "",
    on_head: Callable[[FeedHead], str] | None = None,
    known: KnownTitles = lambda ids: {},
) -> Iterator[NewsItem | Rejection]:
    """The articles of a downloaded feed; a Rejection's line is the entry's position, from 1. Raises SourceMalformed.

    section: for all its articles; None: each is sorted by its own vector. key: identifies the feed; by default its
    location. on_head: called with the feed's head, returns the publisher's name; by default the feed's title or host.
    known: titles of the pool's articles (`entry_ids`). A document that is not well-formed is read as far as feedparser
    can; a final Rejection then says what is wrong.
    """
    try:
        parsed = parse(document.data, content_type=document.content_type, base=document.base)
    except FeedUnreadable as refused:
        raise SourceMalformed(document.location, str(refused)) from refused
    named = on_head(_head(document, parsed)) if on_head else ""
    feed = _Feed.of(document, parsed, section or UNSORTED, named)
    return _entries(feed, parsed, now, key or source_of(document.location), known)


def _head(document: Document, parsed: ParsedFeed) -> FeedHead:
    site = _canonical(parsed.head["link"], document.base)
    return FeedHead(parsed.head["title"], site, parsed.head["every_sec"])


class _Feed(NamedTuple):
    base: str
    site: str
    publisher: str
    section: str
    topics: frozenset[str]

    @classmethod
    def of(cls, document: Document, parsed: ParsedFeed, section: str, named: str) -> _Feed:
        head, counts = parsed.head, Counter(one for entry in parsed.entries for one in entry["labels"])
        topics = frozenset(one for one, count in counts.items() if count >= TOPIC_ENTRIES)
        base = document.base or head["link"]
        site = _canonical(head["link"], base) or _canonical("/", document.base)
        publisher = named or head["title"] or _host(site)
        topics -= {section, UNSORTED} | NO_TOPICS
        return cls(base, site, shortened(publisher, PUBLISHER_CHARS), section, topics)


class _Completed(NamedTuple):
    """An entry whose missing title or link has been filled in."""

    number: int
    entry: dict[str, Any]
    title: str
    own_link: str
    link: str

    @property
    def names(self) -> EntryNames:
        """What identifies it."""
        return EntryNames(
            self.entry["guid"], self.own_link, self.title, f"{self.entry['summary']}\n{self.entry['content']}"
        )


def _entries(
    feed: _Feed, parsed: ParsedFeed, now: datetime, key: str, known: KnownTitles
) -> Iterator[NewsItem | Rejection]:
    rows = [_completed(number, entry, feed) for number, entry in enumerate(parsed.entries, start=1)]
    entries = [row for row in rows if isinstance(row, _Completed)]
    ids = entry_ids(key, [entry.names for entry in entries], site=feed.site, known=known)
    newest = _newest_versions({entry.number: one for entry, one in zip(entries, ids, strict=True)}, parsed.entries)
    for row in rows:
        if isinstance(row, Rejection):
            yield row
        elif row.number in newest:
            yield _item(newest[row.number], row, feed, now)
    after = len(parsed.entries) + 1
    if parsed.left_out:
        yield Rejection(after, "feed", f"{parsed.left_out:,} entries are beyond the limit of {ENTRIES_LIMIT:,}")
    if parsed.fault is not None and not parsed.fault.endswith(HARMLESS_FAULT):
        yield Rejection(after, "feed", f"is not well-formed ({parsed.fault}); only part of it may have been read")


def _newest_versions(ids: dict[int, str], entries: Sequence[dict[str, Any]]) -> dict[int, str]:
    """The ids by number, only the newest version of each.

    Without different dates, the first version is the newest, unless the document lists old entries first.
    """
    dates = [entry["updated"] for entry in entries if entry["updated"]]
    oldest_first = len(dates) > 1 and dates[0] < dates[-1]
    newest: dict[str, int] = {}
    for number in sorted(ids, reverse=oldest_first):
        held = newest.setdefault(ids[number], number)
        if (entries[number - 1]["updated"] or []) > (entries[held - 1]["updated"] or []):
            newest[ids[number]] = number
    return {number: news_id for news_id, number in newest.items()}


def _completed(number: int, entry: dict[str, Any], feed: _Feed) -> _Completed | Rejection:
    if entry["fault"] is not None:
        return Rejection(number, "entry", f"can't be read ({entry['fault']})")
    own_link = _canonical(entry["link"], feed.base) or _canonical(entry["enclosure"], feed.base)
    title = entry["title"] or beginning(entry["beginning"], TITLE_FROM_TEXT_CHARS) or _name_of(own_link)
    if not title:
        return Rejection(number, "entry", "has no title, text or link")
    link = own_link if leads_out(own_link) else feed.site
    return _Completed(number, entry, shortened(title, TITLE_LIMIT_CHARS), own_link, link)


def _canonical(link: str, base: str) -> str:
    """The link in its canonical form; '' if it can't be used, since an entry doesn't need one."""
    try:
        return canonical(link, base) if link else ""
    except ValueError:
        return ""


def _name_of(link: str) -> str:
    """The last part of a link's path, or its host, as the title of an entry that has nothing else."""
    parts = urlsplit(link)
    return unquote(parts.path.rstrip("/").rpartition("/")[2]).strip() or parts.hostname or ""


def _host(link: str) -> str:
    try:
        return urlsplit(link).hostname or ""
    except ValueError:
        return ""


def _item(news_id: str, completed: _Completed, feed: _Feed, now: datetime) -> NewsItem | Rejection:
    entry = completed.entry
    abstract, body, shown = _texts(entry)
    pictures = (*(PictureLink(*each) for each in entry["pictures"]), *(PictureLink("text", url) for url in shown))
    published_at, dated = _published(entry, now)
    try:
        return NewsItem(
            id=news_id,
            title=completed.title,
            abstract=abstract,
            body=body,
            url=completed.link,
            publisher=feed.publisher,
            section=feed.section,
            topic=next((label for label in entry["labels"] if label in feed.topics), feed.section),
            published_at=published_at,
            dated=dated,
            picture=best_picture(pictures, feed.base),
            text_pictures=tuple(shown[:TEXT_PICTURES_LIMIT]),
        )
    except ValidationError as error:
        return rejection(completed.number, error)


def _texts(entry: dict[str, Any]) -> tuple[str, str, list[str]]:
    """An entry's abstract, its body, and the addresses of the body's pictures.

    The body is the content, or the summary if there is no content or the summary is a longer article.
    """
    summary, content = (read_body(entry[name]) for name in ("summary", "content"))
    abstract, text = text_of_body(summary), text_of_body(content)
    alone = not content or (len(abstract) > ABSTRACT_CHARS and len(abstract) > len(text))
    shown = next((piece.attributes["alt"] for piece in (*summary, *content) if piece.attributes.get("alt")), "")
    name = "summary" if alone else "content"
    body = _media(entry, entry[name]) + entry[name]
    return beginning(abstract or text or shown, ABSTRACT_CHARS), cut_body(body, BODY_CHARS), entry[f"{name}_pictures"]


def _media(entry: dict[str, Any], body: str) -> str:
    """Elements for the entry's audio and video that its body doesn't contain yet."""
    pieces = []
    for one in (MediaLink(*each) for each in entry["media"]):
        facts = {"src": one.url, "seconds": str(one.seconds or ""), "bytes": str(one.bytes or "")}
        piece = Piece("start", one.kind, {key: value for key, value in facts.items() if value})
        if is_of_form(one.url, "web") and f' src="{escaped(one.url)}"' not in body:
            pieces.append(piece)
    return write_body(pieces)


def _published(entry: dict[str, Any], now: datetime) -> tuple[datetime, bool]:
    """When an entry was published and True, or the time of arrival and False if its feed gives no valid date."""
    given = entry["published"]
    if given is None:
        return now, False
    try:
        moment = datetime.fromtimestamp(calendar.timegm((*given, 0, 0, 0)), UTC)
    except (ValueError, OverflowError, OSError):
        return now, False
    return (now, False) if moment > now + CLOCK_SKEW else (min(moment, now), True)
