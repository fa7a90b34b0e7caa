"""The figures that are always in sight: the shield and the thin line under the header."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from device_app.feed.item import FeedMode

Shield = Literal["green", "amber", "red"]


@dataclass(frozen=True)
class LoopTrouble:
    """The last error of a background loop that has not gone well since."""

    loop: str
    at: datetime
    words: str


@dataclass(frozen=True)
class StatusView:
    """Shield: green with budget for another report (or with reports off), amber without, red if a release was refused.

    online is None before the first try to reach the backend.
    """

    profile: str
    mode: str
    shield: Shield
    shield_words: str
    spent_today: float
    per_day: float
    release: str | None
    feed_mode: FeedMode | None
    feed_made_at: datetime | None
    feed_ms: float | None
    online: bool | None
    last_sync_at: datetime | None
    clicks: int
    chosen_sections: tuple[str, ...] | None
    training: bool
    troubles: tuple[LoopTrouble, ...]
