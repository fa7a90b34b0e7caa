"""A new device store in a real file, and cards for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from protocol.news import NewsCard

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MakeCard = Callable[..., NewsCard]


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def make_card() -> MakeCard:
    def make(news_id: str, title: str = "Ships wait outside the port", **changes: object) -> NewsCard:
        values: dict[str, object] = {
            "id": news_id,
            "title": title,
            "abstract": "A strike enters its third day.",
            "url": f"https://news.example/{news_id}",
            "publisher": "The Harbour Post",
            "section": "economy",
            "topic": "ports",
            "published_at": NOW,
            "weight": 0.5,
        }
        return NewsCard.model_validate(values | changes)

    return make
