from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine

from backend.news.item import NewsItem
from backend.news.pool import NewsPool

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def pool(engine: Engine) -> NewsPool:
    return NewsPool(engine, clock=lambda: NOW)


@pytest.fixture
def item() -> Callable[..., NewsItem]:
    """Makes a news item: `item("a", title, minutes_old=5, body="...")`."""

    def make(
        news_id: str, title: str = "", *, abstract: str = "", minutes_old: float = 0.0, **fields: object
    ) -> NewsItem:
        values = {"section": "world", "topic": "europe"} | fields
        published_at = NOW - timedelta(minutes=minutes_old)
        values |= {"id": news_id, "title": title or f"Title of {news_id}", "abstract": abstract}
        return NewsItem.model_validate(values | {"published_at": published_at})

    return make
