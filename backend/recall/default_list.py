"""The default list: recent, editorially weighted and popular news, diversified; the same for everybody."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from backend.news.pool import PoolRow

HALF_LIFE_HOURS = 12.0
WEIGHT_FLOOR = 0.2
"""News of editorial weight 0 count a sixth of those of weight 1, so that they still show when fresh."""
STORY_REPEAT = 0.35
"""What each earlier item of the same story leaves of a score: its second item rarely comes near its first."""
SECTION_REPEAT = 0.75
SECTION_WINDOW = 12
"""Each item of a section among the last so many takes a quarter off that section's next one."""


def default_order(
    news: Sequence[PoolRow], now: datetime, limit: int, lifts: NDArray[np.float32] | None = None
) -> list[int]:
    """Rows of `news` in the order of the default list, at most `limit`; the same input gives the same list.

    lifts [n] are those of private counts: news that are clicked twice as often as usual when displayed score double. An
    item's score halves every 12 hours. Since all halve together their order does not depend on `now`, and a list
    stays right between two rebuilds; only news dated in the future wait for their hour (they count as of now).
    """
    counted = np.zeros(len(news)) if lifts is None else lifts
    scores = [_score(item, now) * math.exp(lift) for item, lift in zip(news, counted.tolist(), strict=True)]
    by_score = sorted(range(len(news)), key=lambda row: (-scores[row], news[row].id))
    told: Counter[str] = Counter()
    queues: dict[str, list[tuple[float, int]]] = {}
    for row in by_score:
        item = news[row]
        told_before = 0
        if item.story is not None:
            told_before = told[item.story]
            told[item.story] += 1
        queues.setdefault(item.section, []).append((scores[row] * STORY_REPEAT**told_before, row))
    for queue in queues.values():
        queue.sort(key=lambda entry: news[entry[1]].id, reverse=True)
        queue.sort(key=lambda entry: entry[0])  # stable: the best at the end, to pop; of equals the lower id
    order: list[int] = []
    window: deque[str] = deque(maxlen=SECTION_WINDOW)
    while queues and len(order) < limit:
        recent = Counter(window)
        section = max(queues, key=lambda name: (queues[name][-1][0] * SECTION_REPEAT ** recent[name], name))
        order.append(queues[section].pop()[1])
        window.append(section)
        if not queues[section]:
            del queues[section]
    return order


def _score(item: PoolRow, now: datetime) -> float:
    age_hours = max((now - item.published_at).total_seconds() / 3_600, 0.0)
    return float((WEIGHT_FLOOR + (1 - WEIGHT_FLOOR) * item.weight) * 0.5 ** (age_hours / HALF_LIFE_HOURS))
