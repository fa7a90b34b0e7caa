"""The Explore page: every section of the common list."""

from __future__ import annotations

from dataclasses import dataclass

from device_app.wire.news import NewsCard


@dataclass(frozen=True)
class ExploreSection:
    """One section with its best news, newest and weightiest first. stance is the reader's: 'follow', 'block', None."""

    section: str
    cards: tuple[NewsCard, ...]
    stance: str | None
