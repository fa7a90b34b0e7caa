"""Reads one followed feed with a conditional GET, ingests what is new, and computes how often to poll the feed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from heapq import nlargest
from typing import NamedTuple

import httpx

from backend.news.feed_addresses import checked_url, host_of, key_of, source_of
from backend.news.followed_feeds import WAIT_LIMIT, FollowedFeeds
from backend.news.ingest import Progress, ingest
from backend.news.item import IngestReport, NewsItem, Rejection
from backend.news.pool import NewsPool
from backend.news.public_addresses import IpNetwork
from backend.news.sources.download import Document, NotModified, fetch
from backend.news.sources.full_text import with_full_texts
from backend.news.sources.rss import FeedHead, read_feed

LEARNT_FROM = 10
"""Number of a feed's newest entries from which its pace is computed."""
UNKNOWN = timedelta(hours=1)
"""The initial pace of a feed whose entries have no dates."""
SLOWER, FASTER = 1.5, 0.5
"""Factors by which an answer without, or with, new entries changes the pace of such a feed."""
STILL_SLOWER = 1.25
"""Factor by which an answer that nothing has changed (304) changes any pace."""


def learnt(published: Sequence[datetime], now: datetime) -> timedelta | None:
    """The mean interval between the newest entries, counting the time since the last one; None without dates.

    Dates from `now` on are ignored, since entries without a date get the time of their arrival.
    """
    dated = sorted((moment for moment in published if moment < now), reverse=True)[:LEARNT_FROM]
    return (now - dated[-1]) / len(dated) if dated else None


def pace(
    published: Sequence[datetime] | None,
    now: datetime,
    *,
    last: timedelta | None = None,
    brought: int = 0,
    hint: timedelta | None = None,
) -> timedelta:
    """The interval at which to poll a feed, after an answer.

    published: the dates of its entries; None if nothing has changed (304). last: its pace so far. brought: how many new
    entries the answer had. hint: the interval at which the feed says it publishes; a lower bound if there are dates.
    """
    if published is None:
        return UNKNOWN if last is None else last * STILL_SLOWER
    found = learnt(published, now)
    if found is not None:
        return max(found, hint) if hint else found
    if last is None:
        return hint or UNKNOWN
    return last * (FASTER if brought else SLOWER)


NO_HEAD = FeedHead("", "", 0.0)


class IngestedAnswer(NamedTuple):
    """An ingested answer: the report, the publisher's name, the feed's site, and the newest dates.

    hint: the interval at which the feed says it publishes; None if it doesn't say.
    """

    report: IngestReport
    name: str
    site: str
    published: Sequence[datetime]
    hint: timedelta | None


class FullTexts:
    """Gives a feed's new stories the full texts of their pages, and records why a story keeps its teaser.

    page: fetches a page; raises SourceError.
    """

    def __init__(self, feeds: FollowedFeeds, key: str, page: Callable[[str], bytes]) -> None:
        self._feeds, self._key, self._page = feeds, key, page

    def of(self, pool: NewsPool, rows: Iterable[NewsItem | Rejection]) -> Iterator[NewsItem | Rejection]:
        """Yield the rows of one reading, with full texts."""
        entries, faults = list(rows), list[str]()
        known = pool.texts([row.id for row in entries if isinstance(row, NewsItem)])
        yield from with_full_texts(entries, known, self._page, faults.append)
        self._feeds.note_full_text(self._key, faults)


def take_in(
    pool: NewsPool,
    document: Document,
    *,
    key: str,
    named: Callable[[str], str],
    now: datetime,
    section: str | None = None,
    progress: Progress | None = None,
    full_texts: FullTexts | None = None,
) -> IngestedAnswer:
    """Ingest a downloaded feed under its key.

    named: returns the publisher's name for the feed's own title. full_texts: None keeps the texts of the feed. Raises
    SourceMalformed.
    """
    head, name, published = NO_HEAD, "", list[datetime]()

    def note_head(found: FeedHead) -> str:
        nonlocal head, name
        head, name = found, named(found.title)
        return name

    def dated(rows: Iterable[NewsItem | Rejection]) -> Iterator[NewsItem | Rejection]:
        for row in rows:
            if isinstance(row, NewsItem) and row.dated:
                published.append(row.published_at)
            yield row

    rows = dated(read_feed(document, now=now, section=section, key=key, on_head=note_head, known=pool.titles))
    if full_texts is not None:
        rows = full_texts.of(pool, rows)
    report = ingest(pool, rows, source=key, progress=progress, oldest=pool.horizon(now))
    hint = timedelta(seconds=head.every_sec) if head.every_sec else None
    return IngestedAnswer(report, name, head.site, nlargest(LEARNT_FROM, published), hint)


def follow(
    pool: NewsPool,
    feeds: FollowedFeeds,
    location: str,
    *,
    now: datetime,
    due_at: datetime | None = None,
    progress: Progress | None = None,
    allowed: Sequence[IpNetwork] = (),
    transport: httpx.BaseTransport | None = None,
) -> IngestReport | None:
    """Ingest a feed (URL or file) into the pool; None if its server says that nothing has changed.

    A URL that could be read is followed from then on. It is due at `due_at` (`now` by default), or later if its server
    says how long the answer is fresh. Validators are stored only once every batch is committed, so a failed run is
    repeated in full. allowed, transport: as in `fetch`.

    Raises SourceError.
    """
    if "://" not in location:
        document = fetch(location)
        assert isinstance(document, Document)  # only a conditional GET returns anything else
        source = source_of(location)
        named = partial(feeds.name_of_file, source, location)
        return take_in(pool, document, key=source, named=named, now=now, progress=progress).report
    known = feeds.find(checked_url(location))
    key = known.key if known else key_of(location)
    found = fetch(
        location, feeds.last(location), allowed=allowed, transport=transport,
        unverified=bool(known and known.unverified), proxy=known.proxy if known else None,
    )  # fmt: skip
    due_at = max(due_at or now, now + min(timedelta(seconds=found.fresh_sec), WAIT_LIMIT))
    if isinstance(found, NotModified):
        feeds.answered(key, at=now, due_at=due_at, moved_to=found.moved_to)
        return None

    def page(url: str) -> bytes:
        proxy = known.proxy if known else None
        there = fetch(url, allowed=allowed, transport=transport, proxy=proxy)
        assert isinstance(there, Document)
        return there.data

    taken = take_in(
        pool, found, key=key, named=lambda title: feeds.named(key, location, title or host_of(location)), now=now,
        section=known.section if known else None, progress=progress,
        full_texts=FullTexts(feeds, key, page) if known and known.full_text else None,
    )  # fmt: skip
    if known is None:
        feeds.keep(location, found.validators, now, due_at)
        pool.note_answer(key, taken.report)
    feeds.answered(
        key, at=now, due_at=due_at, validators=found.validators, moved_to=found.moved_to,
        pace=pace(taken.published, now, hint=taken.hint, brought=taken.report.changed),
        says={"name": taken.name, "site": taken.site},
    )  # fmt: skip
    return taken.report
