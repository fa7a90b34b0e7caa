"""What a simulated reader likes, and what of a feed that makes it open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device_app.feed.item import Feed, FeedItem, Reason
from device_app.wire.news import NewsCard

FAVOURITES = (2, 4)
"""Favourite topics of one reader, least and most."""
CHANCE_FAVOURITE, CHANCE_SECTION, CHANCE_OTHER = 0.7, 0.25, 0.02
"""Chance to open a story at the head of the page: of a favourite topic, of its section, of anything else."""
POSITION_FADE = 0.03
"""Each place further down makes opening less likely by this share of the first place's chance."""


@dataclass(frozen=True)
class SimulatedInterests:
    """The hidden interests of one simulated reader: (section, topic) pairs and how much each counts (0 to 1)."""

    favourites: dict[tuple[str, str], float]

    @classmethod
    def drawn(cls, cards: Sequence[NewsCard], rng: np.random.Generator) -> SimulatedInterests:
        """A few topics of those that `cards` are on, each as likely as any other."""
        topics = sorted({(card.section, card.topic) for card in cards})
        count = min(len(topics), int(rng.integers(FAVOURITES[0], FAVOURITES[1] + 1)))
        chosen = rng.choice(len(topics), size=count, replace=False)
        return cls({topics[row]: float(rng.uniform(0.6, 1.0)) for row in chosen})

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of the favourite topics: what this reader picks on the first visit."""
        return tuple(sorted({section for section, _ in self.favourites}))

    def chance(self, item: FeedItem) -> float:
        """The probability that this reader opens the item where it stands."""
        liking = self.favourites.get((item.card.section, item.card.topic))
        if liking is not None:
            base = CHANCE_FAVOURITE * liking
        else:
            base = CHANCE_SECTION if item.card.section in self.sections else CHANCE_OTHER
        return base / (1 + POSITION_FADE * item.position)

    def chance_at_head(self, card: NewsCard) -> float:
        """The probability that this reader opens the card at the head of a page: how much it likes it."""
        return self.chance(FeedItem(card, 0, "for_you", Reason("editors", ""), 0.0))

    def opened(self, feed: Feed, rng: np.random.Generator) -> list[FeedItem]:
        """The items of a feed that this reader opens, from the top down: at least the most tempting one."""
        found = [item for item in feed.items if rng.random() < self.chance(item)]
        return found or sorted(feed.items, key=self.chance)[-1:]
