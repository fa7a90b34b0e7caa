"""Developing stories: several reports on one event, shown as a group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import NO_STORY, Candidates

REPORTS_PER_STORY = 3


def developing_groups(
    candidates: Candidates, free: NDArray[np.bool_], scores: NDArray[np.float64], *, stories: int
) -> list[list[int]]:
    """Rows of the best stories with two or more free reports, newest first, at most three a story.

    A story is as good as the mean score of its two best reports; equal stories go by name.
    """
    reports: dict[str, list[int]] = {}
    for row in np.flatnonzero(free & (candidates.stories != NO_STORY)):
        reports.setdefault(candidates.cards[row].story or "", []).append(int(row))
    worth = {name: float(np.sort(scores[rows])[-2:].mean()) for name, rows in reports.items() if len(rows) >= 2}
    best = sorted(worth, key=lambda name: (-worth[name], name))[:stories]
    newest = candidates.published_sec
    return [sorted(reports[name], key=lambda row: -newest[row])[:REPORTS_PER_STORY] for name in best]
