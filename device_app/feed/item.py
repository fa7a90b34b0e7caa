"""What a feed is made of: its items with their reasons, and a story as it is opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from device_app.wire.news import NewsCard

Slot = Literal["lead", "for_you", "fresh", "explore", "developing", "following", "more"]
FeedMode = Literal["personal", "cold", "front", "offline"]
ReasonKind = Literal[
    "interest", "following", "chosen", "liked", "recent", "explore", "developing", "popular", "editors"
]


@dataclass(frozen=True)
class Reason:
    """Why a story is in the feed, in a sentence for the reader. Made and kept on the device.

    clicks are the reader's own clicked news that weighed most, strongest first (at most three); interest is the label
    of the interest cluster they belong to, if any.
    """

    kind: ReasonKind
    words: str
    interest: str | None = None
    clicks: tuple[NewsCard, ...] = ()


@dataclass(frozen=True)
class FeedItem:
    """One card in its place. score is the adjusted local score (no unit); position counts from 0."""

    card: NewsCard
    position: int
    slot: Slot
    reason: Reason
    score: float


@dataclass(frozen=True)
class Feed:
    """A built feed; saved before it is shown. Items of one story with slot 'developing' follow each other.

    fresh counts the items of the last fresh_hours, whichever slot they are in: how much room news have that nobody has
    opened yet. device_ms and server_ms hold milliseconds by stage (wire.timing); recalled counts the candidates it was
    chosen from. Items with slot 'more' were added at its end; complete: there are no more to add.
    """

    feed_id: str
    made_at: datetime
    release: str | None
    items: tuple[FeedItem, ...]
    mode: FeedMode
    notice: str | None = None
    device_ms: dict[str, float] = field(default_factory=dict)
    server_ms: dict[str, float] = field(default_factory=dict)
    recalled: int = 0
    fresh: int = 0
    fresh_hours: float = 0.0
    complete: bool = False

    def in_slot(self, *slots: Slot) -> tuple[FeedItem, ...]:
        """The items of these slots, in feed order."""
        return tuple(item for item in self.items if item.slot in slots)

    @property
    def lead(self) -> FeedItem | None:
        """The item that leads the page, if the feed has any."""
        return next(iter(self.in_slot("lead")), None)

    @property
    def total_device_ms(self) -> float:
        """Milliseconds from the request to the built feed (network included)."""
        return sum(self.device_ms.values())


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
