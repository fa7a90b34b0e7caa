"""The candidates of a feed beside the reader's clicks, as a ranker with features sees them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from device_app.feed.candidates import Candidates, Codes
from device_app.feed.freshness import recency
from device_app.feed.tastes import Tastes
from device_app.ranking.features import Situation
from device_app.settings import FeedSettings


def situation(candidates: Candidates, tastes: Tastes, now: datetime, settings: FeedSettings) -> Situation:
    """Sections, topics, recency; popularity is 0 throughout, as no card says yet how often it was read."""
    return Situation(
        sections=candidates.sections,
        topics=candidates.topics,
        clicked_sections=_codes([card.section for card in tastes.clicks]),
        clicked_topics=_codes([card.topic for card in tastes.clicks]),
        recency=recency(candidates, now, settings.half_life_hours),
        popularity=np.zeros(len(candidates)),
    )


def _codes(names: Sequence[str]) -> Codes:
    """As the columns of `Candidates` have them."""
    return np.fromiter(map(hash, names), dtype=np.int64, count=len(names))
