"""Private counts of displays and clicks, and the popularity of each article that follows from them.

A round of the task `count` has a `CountList` as its data, the same for every device; the server answers GET
/v1/releases/{number}/popularity with a `Popularity`, the same for every device.
"""

import math
from collections import Counter
from hashlib import sha256
from typing import Self

from pydantic import AwareDatetime, Field, model_validator

from protocol.ids import Message, NewsId, ReleaseId

COUNTED_NEWS_LIMIT = 8_192
"""Each article takes two ring elements of 4 bytes: 64 KB of an upload."""
LIFTS_LIMIT = 50_000
POPULAR_LIMIT = 200
LIFT_STEP = 1 / 32
LIFT_REACH = 2.0
"""Lifts range from -2 to 2: a click rate of a seventh to seven times the usual one."""
MATERIAL = "news"
DISPLAYED, CLICKED = "displayed", "clicked"
"""The tensors of a count, each float32 [n]."""


class CountList(Message):
    """The articles of a count, and how much one device may contribute.

    A device's vector holds, for each article, `displayed_unit` (w) if it was displayed and 1 if it was clicked, for at
    most D displayed and B clicked articles: its L2 norm is at most sqrt(B + w^2 D). w below 1 spends more of a device's
    share on clicks, of which there are fewer.
    """

    news: tuple[NewsId, ...] = Field(max_length=COUNTED_NEWS_LIMIT)
    displayed_limit: int = Field(ge=1, le=1_024, description="D")
    clicked_limit: int = Field(ge=1, le=256, description="B")
    displayed_unit: float = Field(gt=0, le=1, description="w")
    window_hours: float = Field(gt=0, le=24 * 7, description="Nothing older than this is counted.")

    @model_validator(mode="after")
    def _distinct_news(self) -> Self:
        if twice := next((name for name, times in Counter(self.news).items() if times > 1), None):
            raise ValueError(f"news: id {twice} appears twice")
        return self

    @property
    def norm(self) -> float:
        """The L2 norm that no device's vector exceeds."""
        return math.sqrt(self.clicked_limit + self.displayed_unit**2 * self.displayed_limit)


class Popularity(Message):
    """Current popularity, from private counts, or from recency and editorial weight alone before the first count.

    lifts[i] is how much more often news[i] is clicked when displayed than articles usually are: the logarithm of the
    ratio, in steps of 1/32. Articles that are not listed have 0. popular is the order of `Popular now`.
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
            raise ValueError("news, popular: must list each article at most once")
        most = round(LIFT_REACH / LIFT_STEP)
        if any(abs(lift) > most for lift in self.lifts):
            raise ValueError(f"lifts: from {-most} to {most} steps")
        return self


def etag_of_popularity(content: bytes) -> str:
    """Return the ETag of an answer.

    Both ends compute it, so the server can't use it to mark a device.
    """
    return sha256(content).hexdigest()
