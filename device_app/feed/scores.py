"""The adjusted local score: fit to the reader plus small terms, all in units of one spread of the fit."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, unit
from device_app.feed.preferences import UserPreferences
from device_app.settings import FeedSettings


def age_hours(candidates: Candidates, now: datetime) -> NDArray[np.float64]:
    """[n]: hours since publication; news dated in the future counts as published now."""
    return np.maximum(0.0, (now.timestamp() - candidates.published_sec) / 3_600)


def recency(candidates: Candidates, now: datetime, half_life_hours: float) -> NDArray[np.float64]:
    """[n]: 1 for news of this moment, 1/2 after one half-life, and so on."""
    return np.exp2(-age_hours(candidates, now) / half_life_hours)


SPREAD_WITHOUT_CLICKS = 0.06
"""One spread of the default ranker's fit over a pool, for the reader in the middle: .045 to .078 on MIND's dev."""


def adjusted(
    fit: NDArray[np.float32],
    candidates: Candidates,
    user_preferences: UserPreferences,
    now: datetime,
    settings: FeedSettings,
    *,
    weighed: Collection[str] = (),
    popularity: NDArray[np.float64] | None = None,
    times_seen: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """[n]: standardised fit + recency + popularity + editorial weight + names followed or chosen + reactions, less what
    was looked at before.

    fit is [n], the ranker's scores; weighed names the features it has weighed already, which are not counted again.
    popularity is [n], from -1 to 1 (`feed.popular`); None: nothing is known of any. times_seen is [n], in how many
    feeds each was looked at and not opened: the first costs seen_penalty, three twice as much. None: none was.
    Without clicks those features alone make up the fit; its spread would make too much of them: a typical one is used.
    """
    return (
        standardised(fit, SPREAD_WITHOUT_CLICKS if weighed and not user_preferences.clicks else None)
        + (
            0.0
            if "recency" in weighed
            else settings.recency_weight * recency(candidates, now, settings.half_life_hours)
        )
        + (0.0 if popularity is None or "popularity" in weighed else settings.popularity_weight * popularity)
        + settings.editorial_weight * candidates.weights
        + settings.follow_weight * followed(candidates, user_preferences)
        + settings.chosen_section_weight * chosen(candidates, user_preferences)
        + settings.reaction_weight * reacted(candidates, user_preferences)
        - (0.0 if times_seen is None else settings.seen_penalty * np.log2(1.0 + times_seen))
    )


def standardised(fit: NDArray[np.float32], spread: float | None = None) -> NDArray[np.float64]:
    """[n]: mean 0 and spread 1, so that the other terms mean the same under every ranker; zeros if all are equal.

    `spread`, if given, is divided by instead of the spread that these scores have.
    """
    wide = fit.astype(np.float64)
    if spread is None:
        spread = float(wide.std()) if len(wide) else 0.0
    if spread < 1e-9:
        return np.zeros_like(wide)
    return np.asarray((wide - wide.mean()) / spread)


def followed(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.bool_]:
    """[n]: True where topic, section or publisher is followed."""
    return (
        candidates.named(candidates.topics, user_preferences.followed.topics)
        | candidates.named(candidates.sections, user_preferences.followed.sections)
        | candidates.named(candidates.publishers, user_preferences.followed.publishers)
    )


def chosen(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.float64]:
    """[n]: 1 in the sections picked at the first visit, fading as 1 / (1 + clicks / 5) while clicks take over."""
    hits = candidates.named(candidates.sections, user_preferences.chosen_sections)
    return hits.astype(np.float64) / (1.0 + len(user_preferences.clicks) / 5.0)


def reacted(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.float64]:
    """[n]: greatest cosine to liked news less greatest cosine to news the reader wants less of; negatives count 0."""
    return _pull(candidates, user_preferences.liked) - _pull(candidates, user_preferences.disliked)


def _pull(candidates: Candidates, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    if not len(vectors) or not len(candidates):
        return np.zeros(len(candidates))
    nearest = (candidates.unit_vectors @ unit(vectors).T).max(axis=1)
    return np.asarray(np.maximum(nearest, 0.0), dtype=np.float64)
