"""News already shown, and news that tells the same again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.columns import NO_STORY, Codes


def unseen(candidates: Candidates, seen: set[str]) -> NDArray[np.bool_]:
    """[n]: True where the news was not shown before."""
    return ~candidates.named(candidates.ids, seen)


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
