"""A story as it is opened."""

from __future__ import annotations

from dataclasses import dataclass

from device_app.feed.item import Reason
from device_app.wire.news import NewsCard


@dataclass(frozen=True)
class Article:
    """An opened story. paragraphs is empty if its text is not on this device (it is never asked for alone)."""

    card: NewsCard
    paragraphs: tuple[str, ...]
    reason: Reason | None
    related: tuple[NewsCard, ...]
    reactions: frozenset[str] = frozenset()
    feed_id: str | None = None


def paragraphs_of(body: str) -> tuple[str, ...]:
    """A body's paragraphs: separated by blank lines on the wire, outer white space removed."""
    return tuple(part for part in (block.strip() for block in body.split("\n\n")) if part)
