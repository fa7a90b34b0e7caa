"""Who gets which place: lead, for you, developing, fresh, explore."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.developing import developing_groups
from device_app.feed.diversity import diversified
from device_app.feed.exploration import explore_rows, fresh_rows
from device_app.feed.item import Slot
from device_app.feed.preferences import UserPreferences
from device_app.feed.seen import one_of_each
from device_app.settings import FeedSettings


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
) -> list[Placed]:
    """At most `size` rows, none twice and no story or headline twice outside its group; the page's order.

    candidates hold only what may be shown; scores is [n]. The personal places are what fresh, explore and developing
    leave over, and are filled first, so that those never take the reader's best; places those can't fill are personal.
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
