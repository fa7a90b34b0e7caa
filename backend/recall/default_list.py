"""The default list: recent, editorially weighted and popular articles, diversified.

The same for every device.
"""

from collections import Counter, deque
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.popularity.estimate import Moments, utc_moments

HALF_LIFE_HOURS = 12.0
WEIGHT_FLOOR = 0.2
"""An article of editorial weight 0 counts a sixth of one of weight 1, so that it still shows when fresh."""
STORY_REPEAT = 0.35
"""Factor on a score for each earlier article of the same story, so that a second one rarely follows closely."""
SECTION_REPEAT = 0.75
SECTION_WINDOW = 12
"""Number of previous articles in which each one of the same section lowers the score of that section's next article by
a quarter.
"""
BEST_FIRST, WIDER = 8, 4
"""The list considers the best articles, BEST_FIRST times its length, then each time WIDER times
more."""


class ListedNews(Protocol):
    """Columns of n articles; weights float64 [n] are editorial."""

    @property
    def ids(self) -> Sequence[str]:
        """[n]"""

    @property
    def sections(self) -> Sequence[str]:
        """[n]"""

    @property
    def stories(self) -> Sequence[str | None]:
        """[n]"""

    @property
    def published_at(self) -> Moments:
        """[n]"""

    @property
    def weights(self) -> NDArray[np.float64]:
        """[n]"""


def default_order(news: ListedNews, now: datetime, limit: int, lifts: NDArray[np.float32] | None = None) -> list[int]:
    """Rows of `news` in the order of the default list, at most `limit`.

    The same input gives the same list.

    lifts [n] come from private counts: an article that is clicked twice as often as usual when displayed scores double.
    A score halves every 12 hours. Since all scores halve together, their order does not depend on `now`, and a list
    stays correct between two rebuilds. Articles dated in the future count as published now.
    """
    scores = _scores(news, now)
    if lifts is not None:
        scores = scores * np.exp(lifts.astype(np.float64))
    looked_at = min(len(scores), BEST_FIRST * limit)
    while True:
        # Rows with equal scores are taken all or none, so that every row left out scores lower than all rows taken.
        floor = -np.inf if looked_at == len(scores) else float(np.partition(scores, -looked_at)[-looked_at])
        order = _order(news, np.flatnonzero(scores >= floor), scores, limit, floor)
        if order is not None:
            return order
        looked_at = min(len(scores), WIDER * looked_at)


def _order(
    news: ListedNews, rows: NDArray[np.intp], scores: NDArray[np.float64], limit: int, floor: float
) -> list[int] | None:
    """The list of these rows.

    None if one of the others, whose scores are below the floor, might be on it.
    """
    by_score = sorted(zip((-scores[rows]).tolist(), [news.ids[row] for row in rows], rows.tolist(), strict=True))
    placed: Counter[str] = Counter()
    queues: dict[str, list[tuple[float, int]]] = {}
    for worse, _, row in by_score:
        story, earlier = news.stories[row], 0
        if story is not None:
            earlier = placed[story]
            placed[story] += 1
        queues.setdefault(news.sections[row], []).append((-worse * STORY_REPEAT**earlier, row))
    for queue in queues.values():
        queue.sort(key=lambda entry: news.ids[entry[1]], reverse=True)
        queue.sort(key=lambda entry: entry[0])  # stable: the best is popped from the end; of equal scores the lower id
    order: list[int] = []
    window: deque[str] = deque(maxlen=SECTION_WINDOW)
    while len(order) < limit:
        if not queues:
            return order if floor == -np.inf else None
        recent = Counter(window)
        worth = {name: queue[-1][0] * SECTION_REPEAT ** recent[name] for name, queue in queues.items()}
        section = max(worth, key=lambda name: (worth[name], name))
        if worth[section] < floor:
            return None
        order.append(queues[section].pop()[1])
        window.append(section)
        if not queues[section]:
            del queues[section]
    return order


def _scores(news: ListedNews, now: datetime) -> NDArray[np.float64]:
    ages_hours = np.maximum((utc_moments([now])[0] - news.published_at).astype(np.int64) / 1e6 / 3_600, 0.0)
    scores: NDArray[np.float64] = (WEIGHT_FLOOR + (1 - WEIGHT_FLOOR) * news.weights) * 0.5 ** (
        ages_hours / HALF_LIFE_HOURS
    )
    return scores
