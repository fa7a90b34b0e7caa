"""Builds a ranker's inputs besides clicks and candidates: feature context and views."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, Codes
from device_app.feed.preference_reader import UserPreferences
from device_app.feed.scores import recency
from device_app.ranking.ranker import FeatureContext
from device_app.ranking.views_ranker import ReaderViews
from device_app.reading.searched_interests import SearchedInterests
from device_app.settings import FeedSettings
from device_app.store.preferences import TowerStore
from protocol.news import NewsCard


def feature_context(
    candidates: Candidates,
    user_preferences: UserPreferences,
    now: datetime,
    settings: FeedSettings,
    popularity: NDArray[np.float64] | None = None,
) -> FeatureContext:
    """Return the feature context of a feed that is being built.

    popularity: as in `feature_context_at`.
    """
    return feature_context_at(candidates, user_preferences.clicks, now, settings.half_life_hours, popularity)


def feature_context_at(
    candidates: Candidates,
    clicks: Sequence[NewsCard],
    at: datetime,
    half_life_hours: float,
    popularity: NDArray[np.float64] | None = None,
) -> FeatureContext:
    """Return the feature context at a given time, with the clicks made until then.

    It holds sections, topics and recency. Training uses past times. popularity [n] is what was known at that time,
    which is stored with the impression: today's popularity would leak later clicks into training. None means that there
    are no counts.
    """
    return FeatureContext(
        sections=candidates.sections,
        topics=candidates.topics,
        clicked_sections=_codes([card.section for card in clicks]),
        clicked_topics=_codes([card.topic for card in clicks]),
        recency=recency(candidates, at, half_life_hours),
        popularity=np.zeros(len(candidates)) if popularity is None else popularity,
    )


def _codes(names: Sequence[str]) -> Codes:
    """Return codes that match the columns of `Candidates`."""
    return np.fromiter(map(hash, names), dtype=np.int64, count=len(names))


class ViewsOfReader:
    """Provides the reader's views; read only when a ranker that uses views builds a feed."""

    def __init__(self, searched: SearchedInterests, reading: TowerStore, searches: TowerStore) -> None:
        self._searched = searched
        self._towers = {"reading": reading, "searches": searches}

    def given(self, model: str, encoder: str) -> ReaderViews:
        """Return the reader's views for ranking with this release's model."""
        vector = self._searched.vector(encoder)
        found = {view: towers.get(model) for view, towers in self._towers.items()}
        return ReaderViews(
            searched=np.zeros((0, 0), np.float32) if vector is None else vector[None],
            towers={view: tower for view, tower in found.items() if tower is not None},
        )
