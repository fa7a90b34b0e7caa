"""News that a feed leaves out: what the reader has ruled out (blocked names, muted interests, 'not interested'), and
what tells the same again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates, unit
from device_app.feed.columns import NO_STORY, Codes
from device_app.feed.preferences import UserPreferences

MUTED_COSINE = 0.6
"""A candidate this near to a click of a muted interest, and nearer to it than to every other click, is muted too."""


def allowed(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.bool_]:
    """[n]: True where nothing the reader said rules the news out.

    Already opened news is ruled out too.
    """
    ruled_out = candidates.named(candidates.ids, user_preferences.opened | user_preferences.disliked_ids)
    return not_hidden(candidates, user_preferences) & ~ruled_out


def not_hidden(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.bool_]:
    """[n]: True where the reader blocked neither topic, section nor publisher, and muted no interest it belongs to.

    What a list shows whose stories stay when they are opened or waved away. Names compare exactly, as the backend
    writes them.
    """
    ruled_out = candidates.named(candidates.topics, user_preferences.blocked.topics)
    ruled_out |= candidates.named(candidates.sections, user_preferences.blocked.sections)
    ruled_out |= candidates.named(candidates.publishers, user_preferences.blocked.publishers)
    return ~(ruled_out | muted(candidates, user_preferences))


def muted(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.bool_]:
    """[n]: True where the nearest click belongs to a muted interest and is near."""
    if not user_preferences.muted or not len(candidates):
        return np.zeros(len(candidates), dtype=bool)
    near_muted = _nearest(candidates, np.concatenate([interest.vectors for interest in user_preferences.muted]))
    near_rest = _nearest(candidates, user_preferences.click_vectors)
    return np.asarray((near_muted >= MUTED_COSINE) & (near_muted > near_rest))


def _nearest(candidates: Candidates, clicks: NDArray[np.float32]) -> NDArray[np.float32]:
    """[n]: greatest cosine to any click, -1 without clicks."""
    return np.asarray((candidates.unit_vectors @ unit(clicks).T).max(axis=1, initial=-1.0))


def one_of_each(candidates: Candidates, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[n]: True for the best-scored news of every headline, and of those, of every developing story.

    Two headlines are the same if they agree without regard to case and outer white space.
    """
    order = np.argsort(-scores, kind="stable")
    order = order[_first_of_each(candidates.headlines[order])]
    stories = candidates.stories[order]
    told = stories != NO_STORY
    keep = ~told
    keep[np.flatnonzero(told)[_first_of_each(stories[told])]] = True
    found = np.zeros(len(candidates), dtype=bool)
    found[order[keep]] = True
    return found


def _first_of_each(codes: Codes) -> NDArray[np.intp]:
    """Positions of first occurrences, in order."""
    return np.sort(np.unique(codes, return_index=True)[1])
