"""What a feed is made of: its items with their reasons, and a story as it is opened."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from device_app.wire.news import NewsCard

PageSlot = Literal["lead", "for_you", "fresh", "explore", "developing", "following", "more"]
FeedMode = Literal["personal", "cold", "front", "offline"]
Ending = Literal["whole", "teaser", "cut", "absent"]
CUT = "[…]"
"""The last paragraph of a text that is sent up to here, being too long to come whole with the others of its list."""
_TEASED = re.compile(r"\[\s*(?:…|\.\.\.)\s*\]$")
TEASED_WITHIN = 2
"""Paragraphs from the end in which a feed says so that it gives no more; one may follow on where the story appeared."""
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
    slot: PageSlot
    reason: Reason
    score: float


@dataclass(frozen=True)
class Feed:
    """A built feed; saved before it is shown. Items of one story with slot 'developing' follow each other.

    fresh counts the items of the last fresh_hours, whichever slot they are in: how much room news have that nobody has
    opened yet. device_ms and server_ms hold milliseconds by stage (wire.timing); recalled counts the candidates it was
    chosen from, left_out those of them and of the default list that its reader has opened or hides.
    Items with slot 'more' were added at its end; complete: there are no more to add.
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
    left_out: int = 0

    def in_slot(self, *slots: PageSlot) -> tuple[FeedItem, ...]:
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
    """An opened story. paragraphs is empty if its text is not on this device (it is never asked for alone).

    ending: how the text ends. 'teaser': the publisher's feed gives no more of it, or nothing beside the abstract;
    'cut': it goes on, and was cut on its way; 'absent': it is not on this device.
    """

    card: NewsCard
    paragraphs: tuple[str, ...]
    reason: Reason | None
    related: tuple[NewsCard, ...]
    reactions: frozenset[str] = frozenset()
    feed_id: str | None = None
    ending: Ending = "whole"

    @property
    def standfirst(self) -> str:
        """The abstract; nothing where the text begins with the same words."""
        begun = _TEASED.sub("", self.card.abstract).rstrip(" …").rstrip(".")
        text = " ".join(" ".join(self.paragraphs).split())
        return "" if begun and text.startswith(" ".join(begun.split())) else self.card.abstract


def text_of(body: str | None) -> tuple[tuple[str, ...], Ending]:
    """A body's paragraphs and how it ends; None: it is not here.

    Paragraphs are separated by blank lines on the wire; outer white space and the mark of a cut text are removed.
    """
    if body is None:
        return (), "absent"
    parts = tuple(part for part in (block.strip() for block in body.split("\n\n")) if part)
    if parts and parts[-1] == CUT:
        return parts[:-1], "cut"
    teased = not parts or any(_TEASED.search(part) for part in parts[-TEASED_WITHIN:])
    return parts, "teaser" if teased else "whole"
