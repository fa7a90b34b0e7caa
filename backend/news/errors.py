"""Errors of articles and their sources."""

from __future__ import annotations

from backend.errors import OwnfeedError


class NewsError(OwnfeedError):
    """Base class of errors about articles and sources; the message is one plain sentence."""

    code, status, title = "news-error", 500, "The news server has a problem with an article or a feed"


class UnknownNews(NewsError):
    """The pool has no article with this id."""

    code, status, title = "unknown-news", 404, "No such article"

    def __init__(self, news_id: str) -> None:
        super().__init__(f"There is no article {news_id!r} in the pool.")
        self.news_id = news_id


class OptionRefused(NewsError):
    """An option of a source is not valid; the message names it."""

    code, status, title = "source-option", 422, "An option of a news source is not valid"

    def __init__(self, option: str, why: str) -> None:
        super().__init__(f"Option {option}: {why}.", field=option)


class FeedNotFollowed(NewsError):
    """No feed with this address is followed."""

    code, status, title = "feed-not-followed", 404, "This feed is not followed"

    def __init__(self) -> None:
        super().__init__("No feed with that address is followed.", field="url")


class SourceError(NewsError):
    """A source as a whole can't be read."""

    code, status, title = "source-refused", 502, "A news source can't be read"


class FeedRefused(SourceError):
    """An address can't be followed; the message says why.

    limit: the allowed range, if there is one.
    """

    code, status, title = "feed-refused", 422, "This feed can't be followed"

    def __init__(self, why: str, limit: str | None = None) -> None:
        super().__init__(f"The feed's address can't be used: {why}.", field="url", limit=limit)
        self.why = why


class SourceUnreachable(SourceError):
    """The source did not answer, or does not exist."""

    code, status, title = "source-unreachable", 502, "A news source does not answer"

    def __init__(
        self, location: str, why: str, retry_after_sec: float = 0.0, *, status: int = 0, asked: str = ""
    ) -> None:
        super().__init__(f"{location} can't be read: {why}.")
        self.wait_sec = retry_after_sec
        """Seconds until the server allows another request; 0 if it didn't say."""
        self.http_status = status
        """The status of its answer; 0 without an answer."""
        self.asked = asked
        """Address that answered, after redirects; '' without an answer."""


class SourceTooLarge(SourceError):
    """The source exceeds the size limit; reading stopped there."""

    code, status, title = "source-too-large", 502, "A news source is too large"

    def __init__(self, location: str, limit_bytes: int) -> None:
        super().__init__(f"{location} is larger than the limit of {limit_bytes:,} bytes.")


class SourceMalformed(SourceError):
    """The source does not have the expected format."""

    code, status, title = "source-malformed", 502, "A news source is malformed"

    def __init__(self, location: str, why: str) -> None:
        super().__init__(f"{location} {why}.")
