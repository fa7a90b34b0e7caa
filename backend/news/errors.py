"""What can go wrong with the news and their sources.

NewsError
├── UnknownNews          the pool has no news of that id
└── SourceError          a source as a whole can't be read; nothing of it was taken
    ├── SourceUnreachable    no such file, no answer, too many redirects, another scheme than http or https
    ├── SourceTooLarge       it passes the size limit
    └── SourceMalformed      it is not what it should be: HTML for a feed, entities, another encoding
"""

from __future__ import annotations


class NewsError(Exception):
    """Base of the errors of the news; the message is one plain sentence."""


class UnknownNews(NewsError):
    """The pool has no news of this id."""

    def __init__(self, news_id: str) -> None:
        super().__init__(f"No news {news_id!r} in the pool.")
        self.news_id = news_id


class SourceError(NewsError):
    """A source as a whole can't be read."""


class SourceUnreachable(SourceError):
    """The source did not answer, or is not there."""

    def __init__(self, location: str, why: str) -> None:
        super().__init__(f"{location} can't be read: {why}.")


class SourceTooLarge(SourceError):
    """The source passes the size limit; reading stopped there."""

    def __init__(self, location: str, limit_bytes: int) -> None:
        super().__init__(f"{location} is larger than the limit of {limit_bytes:,} bytes.")


class SourceMalformed(SourceError):
    """The source is not what it should be."""

    def __init__(self, location: str, why: str) -> None:
        super().__init__(f"{location} {why}.")
