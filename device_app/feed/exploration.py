"""Places in the feed that the reader's profile does not decide: fresh for everyone, and sections rarely read."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable
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
    lots = _lots(chance, [candidates.cards[row].id for row in newest])
    newest.sort(key=lambda row: lots[candidates.cards[row].id])
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
    lots = _lots(chance, best)
    # Weighted draws without repeats by one lot each (Efraimidis and Spirakis 2006): the greatest u ** (1 / weight).
    keys = {name: math.log(max(lots[name], 1e-300)) * (1.0 + read[name]) ** 2 for name in best}
    return [best[name] for name in sorted(best, key=lambda name: -keys[name])[: settings.explore_slots]]


def _lots(chance: random.Random, names: Iterable[str]) -> dict[str, float]:
    """One number a name, even from 0 to 1; that one name more or less is there changes no other's."""
    salt = chance.getrandbits(64)
    return {name: random.Random(f"{salt} {name}").random() for name in names}
