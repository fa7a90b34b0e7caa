"""Counting what is displayed and clicked, in private, and what the counts say of each piece of news.

A round of the task `count` brings a `CountList` as its material, the same for every device; the server answers
GET /v1/releases/{number}/popularity with a `Popularity`, the same for everybody.
"""

from __future__ import annotations

import math
from hashlib import sha256
from typing import Self

from pydantic import AwareDatetime, Field, model_validator

from device_app.wire.ids import Message, NewsId, ReleaseId

COUNTED_NEWS_LIMIT = 8_192
"""Two ring elements of 4 bytes a piece of news: 64 KB of an upload."""
LIFTS_LIMIT = 50_000
POPULAR_LIMIT = 200
LIFT_STEP = 1 / 32
LIFT_REACH = 2.0
"""Lifts are told from -2 to 2: a rate of a seventh to seven times the usual one."""
MATERIAL = "news"
DISPLAYED, CLICKED = "displayed", "clicked"
"""The tensors of a count, each float32 [n]."""


class CountList(Message):
    """What a count is about, and how much of it may come from one device.

    A device's vector holds, for each piece of news, `displayed_unit` (w) where it was displayed and 1 where it was
    clicked, at most D and B of them: its L2 norm is at most sqrt(B + w^2 D). w below 1 spends more of a device's share
    on clicks, of which there are fewer.
    """

    news: tuple[NewsId, ...] = Field(max_length=COUNTED_NEWS_LIMIT)
    displayed_limit: int = Field(ge=1, le=1_024, description="D")
    clicked_limit: int = Field(ge=1, le=256, description="B")
    displayed_unit: float = Field(gt=0, le=1, description="w")
    window_hours: float = Field(gt=0, le=24 * 7, description="Nothing older than this is counted.")

    @model_validator(mode="after")
    def _distinct_news(self) -> Self:
        if len(set(self.news)) != len(self.news):
            raise ValueError("news must be distinct")
        return self

    @property
    def norm(self) -> float:
        """The L2 norm that no device's vector exceeds."""
        return math.sqrt(self.clicked_limit + self.displayed_unit**2 * self.displayed_limit)


class Popularity(Message):
    """What is popular now, as private counts have it; before any, by recency and editorial weight alone.

    lifts[i] is how much more often news[i] is clicked when it is displayed than news usually is: the logarithm of the
    ratio, in steps of 1/32. News that are not named have 0. popular is the order of `Popular now`.
    """

    release: ReleaseId
    rounds: int = Field(ge=0, description="Counts behind this; 0: nothing was counted yet.")
    devices: int = Field(ge=0, description="Devices in the last one.")
    counted_at: AwareDatetime | None = None
    news: tuple[NewsId, ...] = Field(max_length=LIFTS_LIMIT)
    lifts: tuple[int, ...] = Field(max_length=LIFTS_LIMIT)
    popular: tuple[NewsId, ...] = Field(max_length=POPULAR_LIMIT)

    @model_validator(mode="after")
    def _a_lift_each(self) -> Self:
        if len(self.news) != len(self.lifts):
            raise ValueError(f"lifts: {len(self.lifts)} for {len(self.news)} news")
        if len(set(self.news)) != len(self.news) or len(set(self.popular)) != len(self.popular):
            raise ValueError("news, popular: each piece of news at most once")
        most = round(LIFT_REACH / LIFT_STEP)
        if any(abs(lift) > most for lift in self.lifts):
            raise ValueError(f"lifts: from {-most} to {most} steps")
        return self


def etag_of_popularity(content: bytes) -> str:
    """The ETag of an answer: both ends compute it, so that it can't be made a mark of one device."""
    return sha256(content).hexdigest()
