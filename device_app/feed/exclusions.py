"""Filters for articles that a feed leaves out.

The reader excludes articles by blocking names, muting interests or marking them 'not interested'. Duplicates, which
cover the same story or headline again, are left out too.
"""

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import NO_STORY, Candidates, Codes, unit
from device_app.feed.preference_reader import UserPreferences

MUTED_COSINE = 0.6
"""Minimum cosine to the nearest click, one of a muted interest, for a candidate to be muted."""


def allowed(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.bool_]:
    """Return True for articles that the reader has neither excluded nor read, [n]."""
    ruled_out = candidates.named(candidates.ids, user_preferences.read | user_preferences.disliked_ids)
    return not_hidden(candidates, user_preferences) & ~ruled_out


def not_hidden(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.bool_]:
    """Return True for articles that no blocked name, mute rule or muted interest hides, [n].

    For lists in which stories stay after the reader opens or dismisses them. Names (topic, section, publisher) compare
    exactly, as the server writes them.
    """
    ruled_out = candidates.named(candidates.ids, user_preferences.hidden_ids)
    ruled_out |= candidates.named(candidates.topics, user_preferences.blocked.topics)
    ruled_out |= candidates.named(candidates.sections, user_preferences.blocked.sections)
    ruled_out |= candidates.named(candidates.publishers, user_preferences.blocked.publishers)
    return ~(ruled_out | muted(candidates, user_preferences))


def muted(candidates: Candidates, user_preferences: UserPreferences) -> NDArray[np.bool_]:
    """Return True where the nearest click belongs to a muted interest and is near enough, [n]."""
    if not user_preferences.muted or not len(candidates):
        return np.zeros(len(candidates), dtype=bool)
    near_muted = _nearest(candidates, np.concatenate([interest.vectors for interest in user_preferences.muted]))
    near_rest = _nearest(candidates, user_preferences.click_vectors)
    return np.asarray((near_muted >= MUTED_COSINE) & (near_muted > near_rest))


def _nearest(candidates: Candidates, clicks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the highest cosine to any click, [n]; -1 without clicks."""
    return np.asarray((candidates.unit_vectors @ unit(clicks).T).max(axis=1, initial=-1.0))


def one_of_each(candidates: Candidates, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return True for the best-scored article per headline and, of these, per story, [n].

    Headlines are equal if they agree apart from case and surrounding white space. Story means developing story.
    """
    order = np.argsort(-scores, kind="stable")
    order = order[_first_of_each(candidates.headlines[order])]
    stories = candidates.stories[order]
    in_a_story = stories != NO_STORY
    keep = ~in_a_story
    keep[np.flatnonzero(in_a_story)[_first_of_each(stories[in_a_story])]] = True
    found = np.zeros(len(candidates), dtype=bool)
    found[order[keep]] = True
    return found


def _first_of_each(codes: Codes) -> NDArray[np.intp]:
    """Return the positions of first occurrences, in order."""
    return np.sort(np.unique(codes, return_index=True)[1])
