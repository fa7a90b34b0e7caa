"""Who gets which place: lead, for you, developing stories (several reports on one event), fresh, explore."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.columns import NO_STORY
from device_app.feed.diversity import diversified
from device_app.feed.exclusions import one_of_each
from device_app.feed.exploration import explore_rows, fresh_rows
from device_app.feed.item import Slot
from device_app.feed.preferences import UserPreferences
from device_app.settings import FeedSettings

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


@dataclass(frozen=True)
class Placed:
    """A row of the candidates in its slot."""

    row: int
    slot: Slot


def placed(
    candidates: Candidates,
    scores: NDArray[np.float64],
    user_preferences: UserPreferences,
    now: datetime,
    settings: FeedSettings,
    *,
    size: int,
    chance: random.Random,
    seen: NDArray[np.bool_] | None = None,
) -> list[Placed]:
    """At most `size` rows, none twice and no story or headline twice outside its group; the page's order.

    candidates hold only what may be shown; scores is [n]. The personal places are what fresh, explore and developing
    leave over, and are filled first, so that those never take the reader's best; places those can't fill are personal.
    seen is [n], what was looked at before: its score has sunk for that, and fresh and explore have others to draw from.
    """
    free = np.ones(len(candidates), dtype=bool)
    groups = developing_groups(candidates, free, scores, stories=settings.developing_stories)
    grouped = [row for group in groups for row in group]
    free &= ~np.isin(candidates.stories, candidates.stories[grouped])
    free &= one_of_each(candidates, np.where(free, scores, -np.inf))
    rows = np.flatnonzero(free)
    reserved = len(grouped) + settings.fresh_slots + settings.explore_slots
    personal = diversified(
        scores[rows],
        candidates.vectors[rows],
        {
            "topic": (candidates.topics[rows], settings.topic_cap),
            "publisher": (candidates.publishers[rows], settings.publisher_cap),
        },
        count=max(1, size - len(grouped)),
        variety=settings.variety,
    )
    best = [int(rows[row]) for row in personal]
    picked, spare = best[: max(1, size - reserved)], best[max(1, size - reserved) :]
    free[picked] = False
    if seen is not None:
        free &= ~seen
    fresh = fresh_rows(candidates, free, now, settings, chance)
    free[fresh] = False
    explore = explore_rows(candidates, free, user_preferences, now, settings, chance)
    left = size - len(picked) - len(grouped) - len(fresh) - len(explore)
    picked += [row for row in spare if row not in fresh and row not in explore][: max(0, left)]
    page = [Placed(row, "lead" if place == 0 else "for_you") for place, row in enumerate(picked)]
    page += [Placed(row, "developing") for row in grouped]
    page += [Placed(row, "fresh") for row in fresh]
    page += [Placed(row, "explore") for row in explore]
    return page[:size]
