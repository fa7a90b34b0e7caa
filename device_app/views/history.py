"""The reader's own click history, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from device_app.wire.news import NewsCard


@dataclass(frozen=True)
class HistoryEntry:
    """One click; card is None if the news is no longer on the device."""

    click_id: int
    at: datetime
    news_id: str
    card: NewsCard | None


@dataclass(frozen=True)
class HistoryPage:
    """Clicks newest first; page counts from 1."""

    query: str
    page: int
    pages: int
    total: int
    entries: tuple[HistoryEntry, ...]
