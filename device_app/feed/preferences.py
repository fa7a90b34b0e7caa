"""What the reader has told this device, as the ranking needs it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from device_app.wire.news import NewsCard


@dataclass(frozen=True)
class Named:
    """Topics, sections and publishers by name."""

    topics: frozenset[str] = frozenset()
    sections: frozenset[str] = frozenset()
    publishers: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.topics or self.sections or self.publishers)


@dataclass(frozen=True)
class MutedInterest:
    """An interest the reader has muted: vectors of its clicks, [n, D]."""

    label: str
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class UserPreferences:
    """Sensitive, and only ever read on the device.

    clicks are the recent clicked news, oldest first, with click_vectors [H, D] in the same order and click_interests
    [H], the label of each click's interest ('' if none); liked_cards with liked [n, D], and disliked [n, D], are the
    news reacted to; opened and disliked_ids are never shown again. unwanted are the topics of the disliked, one
    for each.
    """

    clicks: tuple[NewsCard, ...]
    click_vectors: NDArray[np.float32]
    click_interests: tuple[str, ...]
    liked_cards: tuple[NewsCard, ...]
    liked: NDArray[np.float32]
    disliked: NDArray[np.float32]
    opened: frozenset[str] = frozenset()
    disliked_ids: frozenset[str] = frozenset()
    unwanted: tuple[str, ...] = ()
    followed: Named = field(default_factory=Named)
    blocked: Named = field(default_factory=Named)
    chosen_sections: frozenset[str] = frozenset()
    muted: tuple[MutedInterest, ...] = ()
