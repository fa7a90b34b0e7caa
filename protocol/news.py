"""Articles as the device sees them: a card without a body, and bodies fetched separately."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

from protocol.bodies import BODY_CHARS
from protocol.ids import Message, NewsId
from protocol.links import leads_out

BODIES_PER_REQUEST = 1_000
ALSO_LIMIT = 100
UNDATED_AGE = timedelta(days=30)
"""An article of unknown age counts as published this long before it arrived, so that it comes after dated ones."""


def _page_or_none(url: str) -> str:
    """Return the link if it is a page of the web, else ''.

    Pages put it into a link: `javascript:` or a page of the reader's own device is read as no link at all. It isn't
    refused, since one bad link would then cost the whole answer.
    """
    return url if leads_out(url) else ""


PageLink = Annotated[str, Field(max_length=2_000), AfterValidator(_page_or_none)]


class AlsoIn(Message):
    """Another source's article about the same event, which is not listed by itself.

    Its text is requested by its own id.
    """

    id: NewsId
    title: str = Field(max_length=1_000)
    url: PageLink
    publisher: str = Field(max_length=120)
    published_at: AwareDatetime


class NewsCard(Message):
    """What a feed shows of an article before it is opened."""

    id: NewsId
    title: str = Field(max_length=1_000)
    abstract: str = Field(max_length=5_000)
    url: PageLink = Field(description="A page of the web; empty: there is none.")
    publisher: str = Field(max_length=120)
    section: str = Field(max_length=80)
    topic: str = Field(max_length=80)
    story: str | None = Field(default=None, max_length=80, description="Shared by the items of one developing story.")
    published_at: AwareDatetime
    dated: bool = Field(default=True, description="False: it arrived then, and its age is unknown.")
    weight: float = Field(ge=0.0, le=1.0, description="Editorial weight.")

    also: tuple[AlsoIn, ...] = Field(default=(), max_length=ALSO_LIMIT, description="Newest first.")

    @property
    def counted_at(self) -> datetime:
        """The publication time used wherever articles are ordered."""
        return self.published_at if self.dated else self.published_at - UNDATED_AGE


class BodiesRequest(Message):
    """POST /v1/news/bodies: the ids of a whole list at once, so that none of them stands out."""

    ids: tuple[NewsId, ...] = Field(min_length=1, max_length=BODIES_PER_REQUEST)


class NewsBody(Message):
    """The text of one article: HTML of one small vocabulary (`protocol.bodies`).

    Other text is not refused: the device shows it as plain text, so that one bad text doesn't invalidate a whole
    answer.
    """

    id: NewsId
    body: str = Field(max_length=BODY_CHARS)


class BodiesAnswer(Message):
    """The bodies of the articles that the server still has, empty if it has no text.

    Expired ids are missing.
    """

    bodies: tuple[NewsBody, ...]
