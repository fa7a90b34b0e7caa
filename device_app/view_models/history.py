"""The reader's own click history, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from device_app.stores import DeviceStores
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


def history_page(stores: DeviceStores, query: str, page: int) -> HistoryPage:
    """One page of clicks whose card has every word of `query`, or of all clicks."""
    found = stores.clicks.search(query, page)
    cards = {card.id: card for card in stores.news.cards([click.news_id for click in found.rows])}
    return HistoryPage(
        query=query,
        page=found.number,
        pages=found.pages,
        total=found.total,
        entries=tuple(
            HistoryEntry(click.id, click.at, click.news_id, cards.get(click.news_id)) for click in found.rows
        ),
    )
