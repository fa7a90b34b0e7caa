"""The Following page: news of the topics, sections and publishers the reader follows."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from device_app.feed.candidates import Candidates
from device_app.feed.exclusions import not_hidden
from device_app.feed.item import FeedItem
from device_app.feed.preferences import UserPreferences
from device_app.feed.reasons import follow_reason
from device_app.feed.scores import followed, recency

FOLLOWING_LIMIT = 300


def following_items(
    candidates: Candidates, user_preferences: UserPreferences, now: datetime, half_life_hours: float
) -> tuple[FeedItem, ...]:
    """At most 300 items, by recency and editorial weight; what the reader hides is left out."""
    shown = candidates.only(followed(candidates, user_preferences) & not_hidden(candidates, user_preferences))
    scores = recency(shown, now, half_life_hours) + shown.weights
    items = []
    for position, row in enumerate(np.argsort(-scores, kind="stable")[:FOLLOWING_LIMIT]):
        card = shown.cards[row]
        reason = follow_reason(card, user_preferences)
        if reason is not None:
            items.append(FeedItem(card, position, "following", reason, float(scores[row])))
    return tuple(items)
