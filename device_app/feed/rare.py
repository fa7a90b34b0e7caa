"""Ranks stories of publishers that rarely publish higher, so that a news agency doesn't bury a weekly essay."""

from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.scores import recency
from device_app.store.articles import Articles
from device_app.store.pool_codes import PoolStore
from device_app.store.preferences import RARE_FIRST, Preferences

RARE_A_WEEK, OFTEN_A_WEEK = 1.0, 16.0
"""Stories a week up to which a publisher gets the full lift, and from which on it gets none."""
HALF_LIFE_HOURS = 168.0


class RareFeeds:
    """Computes from the pool's copy how often each publisher publishes."""

    def __init__(self, articles: Articles, pool: PoolStore, preferences: Preferences) -> None:
        self._articles, self._pool, self._preferences = articles, pool, preferences

    def on(self) -> bool:
        """Return whether the reader wants rare publishers first."""
        return self._preferences.get(RARE_FIRST) is not False

    def of(self, candidates: Candidates, now: datetime) -> NDArray[np.float64]:
        """Return a value from 0 to 1, higher for rarer publishers, halved for each week of the story's age, [n].

        All are 0 if the reader switched this off, or without a copy of the pool, since shorter lists don't show how
        often publishers publish.
        """
        if not self.on() or self._pool.current() is None:
            return np.zeros(len(candidates))
        a_week = self._articles.a_week(now)
        rarity = {publisher: _rarity(count) for publisher, count in a_week.items()}
        found = (rarity.get(card.publisher, 0.0) if card.publisher else 0.0 for card in candidates.cards)
        lifts = np.fromiter(found, dtype=np.float64, count=len(candidates))
        return lifts * recency(candidates, now, HALF_LIFE_HOURS)


def _rarity(a_week: float) -> float:
    return float(np.clip(1.0 - np.log2(max(a_week, RARE_A_WEEK)) / np.log2(OFTEN_A_WEEK), 0.0, 1.0))
