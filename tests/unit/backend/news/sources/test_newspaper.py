"""The newspaper as a source: articles become pool items, an edition that can't be filled is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backend.news.item import NewsItem
from backend.news.sources.newspaper import NewspaperDry, newspaper
from newsroom.content import sections
from newsroom.edition import edition

NOW = datetime(2026, 3, 18, 17, 30, tzinfo=UTC)


def test_each_newsroom_article_becomes_one_pool_item_field_by_field() -> None:
    articles = list(edition(NOW, articles=60))
    items = list(newspaper(NOW, articles=60))
    assert len(items) == 60
    assert all(isinstance(item, NewsItem) for item in items)
    for item, article in zip(items, articles, strict=True):
        for field in ("id", "title", "abstract", "url", "publisher", "section", "topic", "story"):
            assert getattr(item, field) == getattr(article, field)
        assert (item.published_at, item.weight) == (article.published_at, article.weight)


def test_too_many_articles_are_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newsroom.edition.sections", lambda: sections()[:1])
    with pytest.raises(NewspaperDry, match="not 3,000") as refused:
        newspaper(NOW, articles=3000)
    assert refused.value.code == "paper-dry"
