"""News as the reader's device sees it: a card without a body, and bodies fetched apart."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import AwareDatetime, Field, field_validator

from device_app.wire.ids import Message, NewsId

BODIES_PER_REQUEST = 1_000


def is_web_address(url: str) -> bool:
    """Whether a browser opens this as a page of the web: http or https, a host, and nothing that it would strip."""
    if not url.isprintable() or url != url.strip():
        return False  # browsers drop line breaks and tabs anywhere: "java\nscript:" is a script to them
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


class NewsCard(Message):
    """What a feed shows of a piece of news before it is opened."""

    id: NewsId
    title: str = Field(max_length=1_000)
    abstract: str = Field(max_length=5_000)
    url: str = Field(max_length=2_000, description="An http or https address; empty: there is none.")
    publisher: str = Field(max_length=120)
    section: str = Field(max_length=80)
    topic: str = Field(max_length=80)
    story: str | None = Field(default=None, max_length=80, description="Shared by the items of one developing story.")
    published_at: AwareDatetime
    weight: float = Field(ge=0.0, le=1.0, description="Editorial weight.")

    @field_validator("url")
    @classmethod
    def _leads_to_a_page(cls, url: str) -> str:
        """Pages put it into a link: what is no web address, such as `javascript:`, is read as no link at all.

        Not refused, since one bad link would then cost the whole answer, and cards kept by earlier versions.
        """
        return url if is_web_address(url) else ""


class BodiesRequest(Message):
    """POST /v1/news/bodies: the ids of a whole returned list at once, so that none of them stands out."""

    ids: tuple[NewsId, ...] = Field(min_length=1, max_length=BODIES_PER_REQUEST)


class NewsBody(Message):
    """The text of one piece of news, paragraphs separated by a blank line."""

    id: NewsId
    body: str = Field(max_length=200_000)


class BodiesAnswer(Message):
    """The bodies of the news the server still has, empty where it was given none; expired ids are missing."""

    bodies: tuple[NewsBody, ...]
