"""One piece of news as every source delivers it and the pool keeps it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from device_app.wire.ids import NewsId

TITLE_LIMIT_CHARS = 1_000
ABSTRACT_LIMIT_CHARS = 5_000
BODY_LIMIT_CHARS = 200_000
UNSORTED = "unsorted"
"""Section of what came without one, until `backend.sections` has sorted it by its vector."""

Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


class NewsItem(BaseModel):
    """A news item; a source builds it, the pool stores it, nothing edits it in between.

    Raises pydantic's ValidationError, whose message names the field and the limit, on an empty title,
    a text over its limit, a malformed id or a time without a zone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    id: NewsId
    title: str = Field(min_length=1, max_length=TITLE_LIMIT_CHARS)
    abstract: str = Field(default="", max_length=ABSTRACT_LIMIT_CHARS)
    body: str = Field(default="", max_length=BODY_LIMIT_CHARS, description="Paragraphs separated by a blank line.")
    url: str = Field(default="", max_length=2_000, description="Canonical link, or empty.")
    publisher: str = Field(default="", max_length=120)
    section: Label = Field(description="Broad category, lower case: 'politics'.")
    topic: Label = Field(description="Finer category within the section, lower case: 'elections'.")
    story: str | None = Field(default=None, max_length=80, description="Shared by the items of one developing story.")
    published_at: datetime
    picture: str = Field(default="", max_length=2_000, description="Where its publisher's picture is, or empty.")
    weight: float = Field(default=0.5, ge=0.0, le=1.0, description="Editorial weight: 1 leads a front page.")

    @field_validator("published_at")
    @classmethod
    def _in_utc(cls, value: datetime) -> datetime:
        if value.tzinfo is None or not 1 < value.year < 9_999:  # which no zone moves out of the calendar
            raise ValueError("needs a time zone, and a year from 2 to 9998")
        return value.astimezone(UTC)
