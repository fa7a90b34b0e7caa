"""The interests of a simulated reader, and which stories of a feed it opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device_app.feed.item import Feed, FeedItem, Reason
from protocol.news import NewsCard

FAVOURITES = (2, 4)
"""Minimum and maximum number of one reader's favourite topics."""
CHANCE_FAVOURITE, CHANCE_SECTION, CHANCE_OTHER = 0.7, 0.25, 0.02
"""Probability of opening the first story: of a favourite topic, of its section, of others."""
POSITION_FADE = 0.03
"""The head's probability is divided by 1 + this times the position."""


@dataclass(frozen=True)
class SimulatedInterests:
    """The hidden interests of one simulated reader: weights (0 to 1) by (section, topic)."""

    favourites: dict[tuple[str, str], float]

    @classmethod
    def drawn(cls, cards: Sequence[NewsCard], rng: np.random.Generator) -> SimulatedInterests:
        """Draw a few topics of `cards`, uniformly."""
        topics = sorted({(card.section, card.topic) for card in cards})
        count = min(len(topics), int(rng.integers(FAVOURITES[0], FAVOURITES[1] + 1)))
        chosen = rng.choice(len(topics), size=count, replace=False)
        return cls({topics[row]: float(rng.uniform(0.6, 1.0)) for row in chosen})

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections of the favourite topics, which this reader picks on the first visit."""
        return tuple(sorted({section for section, _ in self.favourites}))

    def chance(self, item: FeedItem) -> float:
        """Return the probability that this reader opens the item in its place."""
        liking = self.favourites.get((item.card.section, item.card.topic))
        if liking is not None:
            base = CHANCE_FAVOURITE * liking
        else:
            base = CHANCE_SECTION if item.card.section in self.sections else CHANCE_OTHER
        return base / (1 + POSITION_FADE * item.position)

    def chance_at_head(self, card: NewsCard) -> float:
        """Return the probability that this reader opens the card at the head of a page."""
        return self.chance(FeedItem(card, 0, "for_you", Reason("editors", ""), 0.0))

    def opened(self, feed: Feed, rng: np.random.Generator) -> list[FeedItem]:
        """Return the items this reader opens, from the top; at least the one that it likes most."""
        found = [item for item in feed.items if rng.random() < self.chance(item)]
        return found or sorted(feed.items, key=self.chance)[-1:]
