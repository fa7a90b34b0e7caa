"""What a ranker is given of a reader besides clicks and candidates: the features' context, and the views.

A context holds the candidates of a feed beside the reader's clicks, as a ranker with features sees them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.columns import Codes
from device_app.feed.preferences import UserPreferences
from device_app.feed.scores import recency
from device_app.interests.searched import SearchedInterests
from device_app.ranking.features import FeatureContext
from device_app.ranking.views_ranker import ReaderViews
from device_app.settings import FeedSettings
from device_app.store.parameters import TowerStore
from device_app.wire.news import NewsCard


def feature_context(
    candidates: Candidates,
    user_preferences: UserPreferences,
    now: datetime,
    settings: FeedSettings,
    popularity: NDArray[np.float64] | None = None,
) -> FeatureContext:
    """The features' context of a feed that is being made; popularity as in `feature_context_at`."""
    return feature_context_at(candidates, user_preferences.clicks, now, settings.half_life_hours, popularity)


def feature_context_at(
    candidates: Candidates,
    clicks: Sequence[NewsCard],
    at: datetime,
    half_life_hours: float,
    popularity: NDArray[np.float64] | None = None,
) -> FeatureContext:
    """Sections, topics, recency at a time, beside the clicks made until then: training asks for past times.

    popularity [n] is what was known at that time, kept with the impression: today's would let a ranker see the clicks
    that came later. None: nothing was counted.
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
    """As the columns of `Candidates` have them."""
    return np.fromiter(map(hash, names), dtype=np.int64, count=len(names))


class ViewsOfReader:
    """Read when a ranker of views makes a feed; other rankers never ask."""

    def __init__(self, searched: SearchedInterests, reading: TowerStore, searches: TowerStore) -> None:
        self._searched = searched
        self._towers = {"reading": reading, "searches": searches}

    def given(self, model: str, encoder: str) -> ReaderViews:
        """For a model of a release of this encoder."""
        vector = self._searched.vector(encoder)
        found = {view: towers.get(model) for view, towers in self._towers.items()}
        return ReaderViews(
            searched=np.zeros((0, 0), np.float32) if vector is None else vector[None],
            towers={view: tower for view, tower in found.items() if tower is not None},
        )
