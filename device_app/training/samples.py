"""Training samples from what the reader was shown and clicked. They exist in memory, for one round, on this device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from device_app.ranking.history import left_padded
from device_app.store.clicks import Click
from device_app.store.impressions import Shown
from device_app.wire.recall import CLICKS_LIMIT

Vectors = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Samples:
    """n samples: clicks [n, 50, D] left-padded, click_mask [n, 50], candidates [n, 1 + K, D], clicked news first."""

    clicks: NDArray[np.float32]
    click_mask: NDArray[np.float32]
    candidates: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.clicks)


class SampleSource(Protocol):
    """Something a task draws its samples from."""

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator) -> Samples:
        """At most `limit` samples with K = `negatives`; another draw gives others."""
        ...


@dataclass(frozen=True)
class _Positive:
    """A click that can be learnt from: its feed, and what had been clicked before that feed was shown, oldest first."""

    news_id: str
    feed: Shown
    history: tuple[str, ...]


@dataclass(frozen=True)
class ReaderSamples:
    """A reader's feeds and clicks as a source of samples (ALGORITHMS 1.6, 1.7).

    Args:
        feeds: feeds with at least one click.
        clicks: the reader's clicks, oldest first.
        vectors: of all news named by the others that this device has vectors of; the rest is left out.
        others: news to draw negatives from where a feed shows none.

    Sensitive: only a clipped and noisy gradient of it may leave the device.
    """

    feeds: Sequence[Shown]
    clicks: Sequence[Click]
    vectors: Vectors
    others: Sequence[str] = ()
    _positives: list[_Positive] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_positives", list(self._find_positives()))

    @property
    def available(self) -> int:
        """Clicks that samples can be made of."""
        return len(self._positives)

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator) -> Samples:
        """Samples drawn afresh.

        The history is what was clicked before the feed was shown: neither the click itself nor later ones. K negatives
        come from the same feed, shown and not clicked, with replacement; a feed that was clicked empty draws them from
        `others`. Padding is never a negative. If there are more clicks than `limit`, a random choice of them is used.
        Raises ValueError if there is nothing to draw from.
        """
        if not self._positives:
            raise ValueError("samples: the reader has no click with a history before it")
        chosen = rng.permutation(len(self._positives))[:limit]
        rows = [self._sample(self._positives[place], negatives, rng) for place in chosen]
        return Samples(
            clicks=np.concatenate([clicks for clicks, _, _ in rows]),
            click_mask=np.concatenate([mask for _, mask, _ in rows]),
            candidates=np.stack([candidates for _, _, candidates in rows]),
        )

    def _sample(
        self, positive: _Positive, negatives: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        clicks, mask = left_padded(np.stack([self.vectors[news_id] for news_id in positive.history]))
        pool = self._negatives_of(positive.feed)
        drawn = [pool[place] for place in rng.integers(len(pool), size=negatives)]
        candidates = np.stack([self.vectors[news_id] for news_id in (positive.news_id, *drawn)])
        return clicks, mask, candidates

    def _find_positives(self) -> list[_Positive]:
        found = []
        for feed in self.feeds:
            before = [
                click.news_id
                for click in self.clicks
                if click.at < feed.at and click.feed_id != feed.feed_id and click.news_id in self.vectors
            ]
            if not before or not self._negatives_of(feed):
                continue
            history = tuple(before[-CLICKS_LIMIT:])
            found += [_Positive(news_id, feed, history) for news_id in feed.clicked if news_id in self.vectors]
        return found

    def _negatives_of(self, feed: Shown) -> list[str]:
        clicked = set(feed.clicked)
        same_feed = [news_id for news_id in feed.shown if news_id not in clicked and news_id in self.vectors]
        if same_feed:
            return same_feed
        ever_clicked = clicked | {click.news_id for click in self.clicks}
        return [news_id for news_id in self.others if news_id not in ever_clicked and news_id in self.vectors]
