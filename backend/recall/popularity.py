"""How likely a piece of news is to be read by anybody: what personal lists are measured against and lean on.

Popularity dominates recall (RECALL, section 0). Before any clicks are counted, recency and editorial weight stand in
for it; counted clicks, where there are some, are added to that prior, and news too fresh to have any are lifted by what
news like them got.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

HALF_LIFE_HOURS = 24.0
OLD_SHARE = 0.02
"""What age leaves at least: the oldest news of a pool stay within reach of a reader whose subject they are."""
WEIGHT_FLOOR = 0.2
PRIOR_CLICKS = 0.5
"""How many clicks the prior of an average piece of news stands for."""


def log_popularity(
    published_at: Sequence[datetime],
    weights: NDArray[np.float32],
    now: datetime,
    *,
    clicks: NDArray[np.float64] | None = None,
    topics: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """log pop(i), float32 [n], up to a constant.

    published_at and weights [n] (0 to 1) make the prior; clicks [n] are counts, already decayed by their age. topics
    [n] name each one's nearest prototype: news of a topic whose news are clicked more start higher. News dated in the
    future count as of now.
    """
    ages_hours = np.array([(now - moment).total_seconds() for moment in published_at]) / 3_600
    recency = np.maximum(0.5 ** (np.maximum(ages_hours, 0.0) / HALF_LIFE_HOURS), OLD_SHARE)
    prior = recency * (WEIGHT_FLOOR + (1 - WEIGHT_FLOOR) * weights.astype(np.float64))
    if clicks is None or not len(prior):
        return _log(prior)
    if topics is not None:
        prior = prior * topic_rates(clicks, topics)[topics]
    return _log(clicks + PRIOR_CLICKS * prior / prior.mean())


def topic_rates(clicks: NDArray[np.float64], topics: NDArray[np.int64]) -> NDArray[np.float64]:
    """Clicks a piece of news of each topic, against the pool's mean; a topic of few news is drawn towards 1."""
    count = int(topics.max()) + 1
    size = np.bincount(topics, minlength=count)
    mean = clicks.mean()
    if not mean > 0:
        return np.ones(count)
    return np.asarray((np.bincount(topics, clicks, minlength=count) / mean + 10.0) / (size + 10.0), dtype=np.float64)


def _log(values: NDArray[np.float64]) -> NDArray[np.float32]:
    logs: NDArray[np.float64] = np.log(values)
    return logs.astype(np.float32)
