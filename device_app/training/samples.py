"""Training samples from what the reader was shown and clicked. They exist in memory, for one round, on this device."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from device_app.ranking.features import FeatureContext, feature_columns
from device_app.ranking.padding import left_padded
from device_app.store.clicks import Click
from device_app.store.impressions import Shown
from device_app.wire.recall import CLICKS_LIMIT

Vectors = Mapping[str, NDArray[np.float32]]
FeatureContextAt = Callable[[Sequence[str], Sequence[str], datetime], FeatureContext]
"""(candidates, clicks made before, oldest first, when the feed was shown) -> what a ranker could know of them then."""


@dataclass(frozen=True)
class ReadingMark:
    """What a computation read of the reader's clicks: how many there were up to the newest id, and what was muted."""

    newest: int
    clicks: int
    muted: frozenset[str]


@dataclass(frozen=True)
class Samples:
    """n samples: clicks [n, 50, D] left-padded, click_mask [n, 50], candidates [n, 1 + K, D], clicked news first.

    features [n, 1 + K, F] if they were asked for.
    """

    clicks: NDArray[np.float32]
    click_mask: NDArray[np.float32]
    candidates: NDArray[np.float32]
    features: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.clicks)


@dataclass(frozen=True)
class RowSamples:
    """n samples over a table of distinct news: ids and table [t, D] float32; click_rows int64 [n, 50] left-padded with
    0, click_mask [n, 50], candidate_rows int64 [n, 1 + K], clicked news first; features as in Samples."""

    ids: tuple[str, ...]
    table: NDArray[np.float32]
    click_rows: NDArray[np.int64]
    click_mask: NDArray[np.float32]
    candidate_rows: NDArray[np.int64]
    features: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.click_rows)


class SampleSource(Protocol):
    """Something a task draws its samples from."""

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """At most `limit` samples with K = `negatives` and the features of these names; another draw gives others."""
        ...


@runtime_checkable
class RowSource(Protocol):
    """Something a task draws samples from that name their news by rows."""

    def draw_rows(
        self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()
    ) -> RowSamples:
        """At most `limit` samples with K = `negatives`."""
        ...


class NoSamples:
    """For tasks that need none."""

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Raises ValueError: a task that draws samples has to say that it needs them."""
        raise ValueError("samples: this task has none")


NO_SAMPLES = NoSamples()


def is_held_out(feed_id: str, news_id: str, share: float) -> bool:
    """Whether a click is kept for evaluation: by its hash, so that it's always the same ones and nothing is stored."""
    drawn = int.from_bytes(sha256(f"{feed_id} {news_id}".encode()).digest()[:8], "big")
    return drawn < share * 2**64


@dataclass(frozen=True)
class _Positive:
    """A click that can be learnt from: its feed, and what had been clicked before that feed was shown, oldest first."""

    news_id: str
    feed: Shown
    history: tuple[str, ...]


@dataclass(frozen=True)
class ReaderSamples:
    """A reader's feeds and clicks as a source of samples.

    Args:
        feeds: feeds with at least one click.
        clicks: the reader's clicks, oldest first.
        vectors: of all news named by the others that this device has vectors of; the rest is left out.
        others: news to draw negatives from where a feed shows none.
        contexts: what a ranker with features saw; needed where features are asked for.
        muted: news that nothing is learnt from.
        mark: of the moment it was read.

    Sensitive: only a clipped and noisy gradient of it may leave the device.
    """

    feeds: Sequence[Shown]
    clicks: Sequence[Click]
    vectors: Vectors
    others: Sequence[str] = ()
    contexts: FeatureContextAt | None = None
    muted: frozenset[str] = frozenset()
    mark: ReadingMark | None = None
    _positives: list[_Positive] = field(init=False, repr=False)
    _learnable: list[_Positive] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_positives", self._find_positives(lambda news_id: news_id in self.vectors))
        object.__setattr__(self, "_learnable", self._find_positives(lambda news_id: news_id not in self.muted))

    @property
    def available(self) -> int:
        """Clicks that samples can be made of."""
        return len(self._positives)

    @property
    def learnable(self) -> int:
        """Clicks that samples could be made of if the server had given vectors of all news.

        Whether a device takes part hangs on this number: which news have vectors is the server's choice, and may not
        show by who has samples of them.
        """
        return len(self._learnable)

    def without_held_out(self, share: float) -> ReaderSamples:
        """For gradients: without the clicks that are held out. They still stand in the histories of later ones."""
        return self._part(lambda positive: not is_held_out(positive.feed.feed_id, positive.news_id, share))

    def held_out(self, share: float) -> ReaderSamples:
        """For evaluation: the clicks that gradients leave out."""
        return self._part(lambda positive: is_held_out(positive.feed.feed_id, positive.news_id, share))

    def _part(self, wanted: Callable[[_Positive], bool]) -> ReaderSamples:
        part = copy.copy(self)
        for name in ("_positives", "_learnable"):
            object.__setattr__(part, name, [positive for positive in getattr(self, name) if wanted(positive)])
        return part

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Samples drawn afresh.

        The history is what was clicked before the feed was shown: neither the click itself nor later ones. K negatives
        come from the same feed, looked at and not clicked, with replacement; a feed of which nothing else was looked at
        draws them from `others`. Padding is never a negative. If there are more clicks than `limit`, a random choice of
        them is used.
        Features are those of the moment the feed was shown, from that same history. Which features are asked for
        changes nothing else. Raises ValueError if there is nothing to draw from, or for features without contexts.
        """
        chosen, offered = self._choose(negatives, limit, rng)
        histories = [left_padded(self._vectors(positive.history)) for positive in chosen]
        return Samples(
            clicks=np.concatenate([clicks for clicks, _ in histories]),
            click_mask=np.concatenate([mask for _, mask in histories]),
            candidates=np.stack([self._vectors(ids) for ids in offered]),
            features=np.stack(list(map(self._seen_then(features), chosen, offered))) if features else None,
        )

    def draw_rows(
        self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()
    ) -> RowSamples:
        """The same draw as `draw`, with news named by their rows in a table of distinct ones."""
        chosen, offered = self._choose(negatives, limit, rng)
        row_of: dict[str, int] = {}
        for positive, ids in zip(chosen, offered, strict=True):
            for news_id in (*positive.history, *ids):
                row_of.setdefault(news_id, len(row_of))
        clicks = np.zeros((len(chosen), CLICKS_LIMIT), dtype=np.int64)
        mask = np.zeros(clicks.shape, dtype=np.float32)
        for line, positive in enumerate(chosen):
            rows = [row_of[news_id] for news_id in positive.history]
            clicks[line, -len(rows) :], mask[line, -len(rows) :] = rows, 1.0
        return RowSamples(
            ids=tuple(row_of),
            table=self._vectors(list(row_of)),
            click_rows=clicks,
            click_mask=mask,
            candidate_rows=np.array([[row_of[news_id] for news_id in ids] for ids in offered], dtype=np.int64),
            features=np.stack(list(map(self._seen_then(features), chosen, offered))) if features else None,
        )

    def _choose(
        self, negatives: int, limit: int, rng: np.random.Generator
    ) -> tuple[list[_Positive], list[tuple[str, ...]]]:
        if not self._positives:
            raise ValueError("samples: the reader has no click with a history before it")
        chosen = [self._positives[place] for place in rng.permutation(len(self._positives))[:limit]]
        return chosen, [self._offered(positive, negatives, rng) for positive in chosen]

    def _offered(self, positive: _Positive, negatives: int, rng: np.random.Generator) -> tuple[str, ...]:
        """The clicked news and K others."""
        pool = self._negatives_of(positive.feed, lambda news_id: news_id in self.vectors)
        return (positive.news_id, *(pool[place] for place in rng.integers(len(pool), size=negatives)))

    def _seen_then(self, features: tuple[str, ...]) -> Callable[[_Positive, tuple[str, ...]], NDArray[np.float32]]:
        contexts = self.contexts
        if contexts is None:
            raise ValueError(f"contexts: needed for the features {', '.join(features)}")

        def columns(positive: _Positive, candidates: tuple[str, ...]) -> NDArray[np.float32]:
            return feature_columns(features, contexts(candidates, positive.history, positive.feed.at))

        return columns

    def _vectors(self, ids: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self.vectors[news_id] for news_id in ids])

    def _find_positives(self, held: Callable[[str], bool]) -> list[_Positive]:
        found = []
        for feed in self.feeds:
            before = [
                click.news_id
                for click in self.clicks
                if click.at < feed.at and click.feed_id != feed.feed_id and held(click.news_id)
            ]
            if not before or not self._negatives_of(feed, held):
                continue
            history = tuple(before[-CLICKS_LIMIT:])
            found += [_Positive(news_id, feed, history) for news_id in feed.clicked if held(news_id)]
        return found

    def _negatives_of(self, feed: Shown, held: Callable[[str], bool]) -> list[str]:
        clicked = set(feed.clicked)
        same_feed = [news_id for news_id in feed.shown if news_id not in clicked and held(news_id)]
        if same_feed:
            return same_feed
        ever_clicked = clicked | {click.news_id for click in self.clicks}
        return [news_id for news_id in self.others if news_id not in ever_clicked and held(news_id)]
