"""Developing stories: several reports on one event, shown as a group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.columns import NO_STORY

REPORTS_PER_STORY = 3


def developing_groups(
    candidates: Candidates, free: NDArray[np.bool_], scores: NDArray[np.float64], *, stories: int
) -> list[list[int]]:
    """Rows of the best stories with two or more free reports, newest first, at most three a story.

    A story is as good as the mean score of its two best reports; equal stories go by name.
    """
    rows = np.flatnonzero(free & (candidates.stories != NO_STORY))
    ranked = rows[np.lexsort((-scores[rows], candidates.stories[rows]))]  # story by story, the best report first
    codes, worth = candidates.stories[ranked], scores[ranked]
    firsts = np.flatnonzero(np.diff(codes, prepend=codes[:1] ^ 1))
    sizes = np.diff(firsts, append=len(ranked))
    firsts, sizes = firsts[sizes >= 2], sizes[sizes >= 2]
    means = (worth[firsts] + worth[firsts + 1]) / 2
    finalists = np.flatnonzero(means >= np.sort(means)[-stories:].min(initial=np.inf))
    best = sorted(finalists, key=lambda group: (-means[group], candidates.cards[ranked[firsts[group]]].story))[:stories]
    return [_newest(candidates, ranked[firsts[group] : firsts[group] + sizes[group]]) for group in best]


def _newest(candidates: Candidates, rows: NDArray[np.intp]) -> list[int]:
    order = np.lexsort((rows, -candidates.published_sec[rows]))
    return [int(row) for row in rows[order[:REPORTS_PER_STORY]]]
