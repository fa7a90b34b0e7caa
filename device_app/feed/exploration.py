"""Places in the feed that the reader's profile does not decide: fresh for everyone, and sections rarely read."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from device_app.feed.candidates import Candidates
from device_app.feed.preferences import UserPreferences
from device_app.feed.scores import age_hours, recency
from device_app.settings import FeedSettings

FRESH_POOL = 40
"""Fresh news is drawn from so many of the newest."""


def fresh_rows(
    candidates: Candidates,
    free: NDArray[np.bool_],
    now: datetime,
    settings: FeedSettings,
    chance: random.Random,
) -> list[int]:
    """Rows of the last hours, drawn at random from the newest, each from another section while there are some.

    free is [n], the rows that may be taken. The draw knows nothing of the reader beyond `free`.
    """
    age = age_hours(candidates, now)
    recent = np.flatnonzero(free & (age <= settings.fresh_hours))
    newest = [int(row) for row in recent[np.argsort(age[recent], kind="stable")[:FRESH_POOL]]]
    chance.shuffle(newest)
    sections: Counter[str] = Counter()
    ranked: list[tuple[int, int]] = []
    for row in newest:
        section = candidates.cards[row].section
        ranked.append((sections[section], row))
        sections[section] += 1
    ranked.sort(key=lambda pair: pair[0])
    return [row for _, row in ranked[: settings.fresh_slots]]


def explore_rows(
    candidates: Candidates,
    free: NDArray[np.bool_],
    user_preferences: UserPreferences,
    now: datetime,
    settings: FeedSettings,
    chance: random.Random,
) -> list[int]:
    """The best news, by its editors and its age, of sections the reader rarely opens.

    Sections are drawn without repeats with weight 1 / (1 + clicks in the section) squared, so that the least read come
    most often and none is shut out.
    """
    rows = np.flatnonzero(free)
    worth = candidates.weights + recency(candidates, now, settings.half_life_hours)
    ranked = rows[np.argsort(-worth[rows], kind="stable")]
    firsts = ranked[np.unique(candidates.sections[ranked], return_index=True)[1]]
    best = {candidates.cards[row].section: int(row) for row in firsts}
    read = Counter(card.section for card in user_preferences.clicks)
    picked: list[int] = []
    while best and len(picked) < settings.explore_slots:
        names = list(best)
        section = chance.choices(names, weights=[(1.0 + read[name]) ** -2 for name in names])[0]
        picked.append(best.pop(section))
    return picked
