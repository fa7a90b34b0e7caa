"""The parts of a feed: items with their reasons, and an opened story."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from protocol.bodies import CUT, Piece, blocks_of, pieces_of, text_of_body
from protocol.news import NewsCard

PageSlot = Literal["lead", "for_you", "fresh", "explore", "developing", "following", "more"]
FeedMode = Literal["personal", "cold", "front", "offline"]
Ending = Literal["whole", "teaser", "cut", "absent"]
_TEASED = re.compile(r"\[\s*(?:…|\.\.\.)\s*\]$")
SHOWN = frozenset({"img", "audio", "video"})
"""Elements that are a story by themselves."""
TEASED_WITHIN = 2
"""A feed marks a shortened text within this many last paragraphs.

A note on where the story first appeared may follow the mark.
"""
ReasonKind = Literal[
    "interest", "following", "chosen", "liked", "recent", "explore", "developing", "popular", "rare", "editors"
]


@dataclass(frozen=True)
class Reason:
    """Why a story is in the feed, as a sentence for the reader. Made and kept on the device.

    words is empty if nothing specific to this story or reader can be said; then no reason is shown. clicks are the
    reader's own clicked articles that weighed most, strongest first (at most three). interest is the label of the
    interest cluster they belong to, if any.
    """

    kind: ReasonKind
    words: str
    interest: str | None = None
    clicks: tuple[NewsCard, ...] = ()


@dataclass(frozen=True)
class FeedItem:
    """One card in its place.

    score is the adjusted local score (unitless); position counts from 0.
    """

    card: NewsCard
    position: int
    slot: PageSlot
    reason: Reason
    score: float


@dataclass(frozen=True)
class Feed:
    """A built feed, saved before it is shown.

    fresh counts the items from the last fresh_hours, in any slot. device_ms and server_ms: milliseconds by stage
    (server_timing). recalled counts the candidates that it was chosen from; left_out counts those of them, and of the
    default list, that the reader has opened or hidden. Items with slot 'more' were added at its end; complete: there
    are no more to add.
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
        return tuple(item for item in self.items if item.slot in slots)

    @property
    def lead(self) -> FeedItem | None:
        return next(iter(self.in_slot("lead")), None)


@dataclass(frozen=True)
class Article:
    """An opened story. pieces is empty if its text isn't on this device.

    No request ever asks for one text alone. pieces: the text, checked (`protocol.bodies`). ending: how it ends.
    'teaser': the publisher's feed contains no more than this, or only the abstract. 'cut': the text goes on, but was
    cut before it was sent. 'absent': the text isn't on this device.
    """

    card: NewsCard
    pieces: tuple[Piece, ...]
    reason: Reason | None
    related: tuple[NewsCard, ...]
    reactions: frozenset[str] = frozenset()
    feed_id: str | None = None
    ending: Ending = "whole"

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The plain text of each block."""
        text = text_of_body(self.pieces)
        return tuple(text.split("\n\n")) if text else ()

    @property
    def standfirst(self) -> str:
        """The abstract, or "" if the text or a picture's description begins with the same words."""
        beginning = " ".join(_TEASED.sub("", self.card.abstract).rstrip(" …").rstrip(".").split())
        texts = (text_of_body(self.pieces), text_of_body(self.pieces, pictures=True))
        return "" if beginning and any(_one_line(text).startswith(beginning) for text in texts) else self.card.abstract


def text_of(body: str | None, abstract: str = "") -> tuple[tuple[Piece, ...], Ending]:
    """Return a body's pieces and how it ends; ((), 'absent') if there is no body.

    A body outside the vocabulary is plain text. The mark of a cut text is removed. A text that is no more than its
    abstract is a teaser.
    """
    if body is None:
        return (), "absent"
    pieces = pieces_of(body)
    blocks = blocks_of(pieces)
    if blocks and text_of_body(blocks[-1]) == CUT:
        return tuple(piece for block in blocks[:-1] for piece in block), "cut"
    text = text_of_body(pieces)
    if any(piece.value in SHOWN for piece in pieces if piece.kind == "start"):
        alone = False
    else:
        alone = not text or _one_line(text) == _one_line(abstract)
    teased = alone or any(_TEASED.search(part) for part in text.split("\n\n")[-TEASED_WITHIN:])
    return tuple(pieces), "teaser" if teased else "whole"


def _one_line(text: str) -> str:
    return " ".join(text.split())
