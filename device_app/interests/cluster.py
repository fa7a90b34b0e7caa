"""An interest as the reader sees it on the Interests page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from device_app.wire.news import NewsCard


@dataclass(frozen=True)
class InterestCluster:
    """One interest of the reader, found by clustering the recent clicks; nothing of it leaves the device by name.

    key is stable while the interest keeps some of its clicks; weight is its share of the recent clicks (0 to 1, and 0
    when muted); headlines are its clicked news nearest to its centre, best first.
    """

    key: int
    label: str
    named_by_reader: bool
    muted: bool
    weight: float
    clicks: int
    topics: tuple[str, ...]
    headlines: tuple[NewsCard, ...]
    last_click_at: datetime
