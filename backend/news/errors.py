"""What can go wrong with the news and their sources.

NewsError
├── UnknownNews          the pool has no news of that id
├── OptionRefused        an option of a source makes no sense
├── FeedNotFollowed      no feed of that address is followed
└── SourceError          a source as a whole can't be read; nothing of it was taken
    ├── SourceUnreachable    no such file, no answer, too many redirects, another scheme than http or https
    ├── SourceTooLarge       it passes the size limit
    ├── FeedRefused          an address that can't be followed, or one that is followed already
    └── SourceMalformed      it is not what it should be: HTML for a feed, entities, another encoding
"""

from __future__ import annotations

from backend.errors import OwnfeedError


class NewsError(OwnfeedError):
    """Base of the errors of the news; the message is one plain sentence."""

    code, status, title = "news-error", 500, "Something is wrong with the news"


class UnknownNews(NewsError):
    """The pool has no news of this id."""

    code, status, title = "unknown-news", 404, "There is no such news"

    def __init__(self, news_id: str) -> None:
        super().__init__(f"No news {news_id!r} in the pool.")
        self.news_id = news_id


class OptionRefused(NewsError):
    """An option of a source makes no sense; names it."""

    code, status, title = "source-option", 422, "An option of a news source makes no sense"

    def __init__(self, option: str, why: str) -> None:
        super().__init__(f"Option {option}: {why}.", field=option)


class FeedNotFollowed(NewsError):
    """No feed of this address is followed."""

    code, status, title = "feed-not-followed", 404, "This feed is not followed"

    def __init__(self) -> None:
        super().__init__("No feed of that address is followed.", field="url")


class SourceError(NewsError):
    """A source as a whole can't be read."""

    code, status, title = "source-refused", 502, "A news source can't be read"


class FeedRefused(SourceError):
    """An address can't be followed; the message says why. limit: what it may be, where that is a range."""

    code, status, title = "feed-refused", 422, "This feed can't be followed"

    def __init__(self, why: str, limit: str | None = None) -> None:
        super().__init__(f"The feed's address can't be taken: {why}.", field="url", limit=limit)


class SourceUnreachable(SourceError):
    """The source did not answer, or is not there."""

    code, status, title = "source-unreachable", 502, "A news source does not answer"

    def __init__(self, location: str, why: str, retry_after_sec: float = 0.0) -> None:
        super().__init__(f"{location} can't be read: {why}.")
        self.wait_sec = retry_after_sec
        """How long its server asks to be left alone; 0 where it didn't say."""


class SourceTooLarge(SourceError):
    """The source passes the size limit; reading stopped there."""

    code, status, title = "source-too-large", 502, "A news source is too large"

    def __init__(self, location: str, limit_bytes: int) -> None:
        super().__init__(f"{location} is larger than the limit of {limit_bytes:,} bytes.")


class SourceMalformed(SourceError):
    """The source is not what it should be."""

    code, status, title = "source-malformed", 502, "A news source is not what it should be"

    def __init__(self, location: str, why: str) -> None:
        super().__init__(f"{location} {why}.")
