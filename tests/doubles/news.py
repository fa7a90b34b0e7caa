"""Synthetic articles with vectors: topics are directions.

The topics of a section lie near each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.news import NewsCard

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@dataclass(frozen=True)
class SyntheticPool:
    """cards with vectors [n, D], of length 1, in the same order."""

    cards: tuple[NewsCard, ...]
    vectors: NDArray[np.float32]

    def of_topic(self, topic: str) -> list[int]:
        """Return the rows of a topic."""
        return [row for row, card in enumerate(self.cards) if card.topic == topic]


def card(news_id: str, **changes: object) -> NewsCard:
    """Return a card whose every field may be changed."""
    fields: dict[str, object] = {
        "id": news_id,
        "title": f"Headline {news_id}",
        "abstract": f"What {news_id} is about.",
        "url": "",
        "publisher": "The Double",
        "section": "sport",
        "topic": "sport rowing",
        "story": None,
        "published_at": NOW,
        "weight": 0.5,
    }
    return NewsCard.model_validate(fields | changes)


@lru_cache(maxsize=8)
def synthetic_pool(
    articles: int = 800,
    *,
    sections: int = 8,
    topics_per_section: int = 3,
    dim: int = 256,
    days: float = 7.0,
    now: datetime = NOW,
    seed: int = 7,
) -> SyntheticPool:
    """Articles spread evenly over topics and over the last `days`.

    Of every 40 articles of a topic, two share a story.
    """
    draw = np.random.default_rng(seed)
    middles = draw.normal(size=(sections, dim))
    topics = [
        (f"section{s}", f"section{s} topic{t}", middles[s] + 0.9 * draw.normal(size=dim))
        for s in range(sections)
        for t in range(topics_per_section)
    ]
    cards, vectors = [], []
    for row in range(articles):
        section, topic, middle = topics[row % len(topics)]
        vector = middle + 0.8 * draw.normal(size=dim)
        vectors.append(vector / np.linalg.norm(vector))
        cards.append(
            card(
                f"n{row:05d}",
                section=section,
                topic=topic,
                publisher=f"Paper {row % 7}",
                story=f"story{row // (40 * len(topics))}-{row % len(topics)}" if row // len(topics) % 20 == 0 else None,
                published_at=now - timedelta(days=days * ((row * 37) % articles) / articles, minutes=1),
                weight=float(draw.uniform(0.2, 0.9)),
            )
        )
    return SyntheticPool(tuple(cards), np.array(vectors, dtype=np.float32))
