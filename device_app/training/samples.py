"""Training samples from the articles that the reader was shown and clicked.

They exist in memory, for one round, on this device.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NewsNotHere, NotEligible
from device_app.feed.candidates import Candidates
from device_app.feed.feature_context import feature_context_at
from device_app.ranking.padding import left_padded
from device_app.ranking.ranker import FeatureContext, feature_columns
from device_app.store.clicks import Click, Clicks
from device_app.store.impressions import ImpressionStore, Shown
from device_app.store.news import NewsStore
from device_app.store.participations import CountLog, CountWindow, PaidCount
from protocol.news import NewsCard
from protocol.recall import CLICKS_LIMIT

Vectors = Mapping[str, NDArray[np.float32]]
FeatureContextAt = Callable[[Sequence[str], Sequence[str], datetime], FeatureContext]
"""(candidates, earlier clicks, oldest first, time the feed was shown) -> what a ranker could know of them then."""


@dataclass(frozen=True)
class ReadingMark:
    """The state of the reader's clicks at the time of a computation.

    newest is the highest click id, clicks the number up to it, muted the ids of muted articles.
    """

    newest: int
    clicks: int
    muted: frozenset[str]


@dataclass(frozen=True)
class Samples:
    """n training samples, as arrays; the clicked article is the first candidate.

    clicks [n, 50, D] left-padded, click_mask [n, 50], candidates [n, 1 + K, D], features [n, 1 + K, F] if they were
    requested.
    """

    clicks: NDArray[np.float32]
    click_mask: NDArray[np.float32]
    candidates: NDArray[np.float32]
    features: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.clicks)


@dataclass(frozen=True)
class RowSamples:
    """n samples that refer to a table of distinct articles by rows.

    ids and table [t, D] float32; click_rows int64 [n, 50] left-padded with 0, click_mask [n, 50], candidate_rows int64
    [n, 1 + K], the clicked article first; features as in Samples.
    """

    ids: tuple[str, ...]
    table: NDArray[np.float32]
    click_rows: NDArray[np.int64]
    click_mask: NDArray[np.float32]
    candidate_rows: NDArray[np.int64]
    features: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.click_rows)


class SampleSource(Protocol):
    """A source from which a task draws samples."""

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Return at most `limit` samples with K = `negatives` and the features of these names.

        Each draw gives different samples.
        """


@runtime_checkable
class RowSource(Protocol):
    """A source of samples that refer to articles by rows."""

    def draw_rows(
        self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()
    ) -> RowSamples:
        """Return at most `limit` samples with K = `negatives`."""


class NoSamples:
    """The source for tasks that need no samples."""

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Raise ValueError: a task that draws samples must declare that it needs them."""
        raise ValueError("samples: this task has no samples")


NO_SAMPLES = NoSamples()


def is_held_out(feed_id: str, news_id: str, share: float) -> bool:
    """Return whether a click is held out for evaluation.

    Its hash decides, so the answer is always the same and nothing is stored.
    """
    drawn = int.from_bytes(sha256(f"{feed_id} {news_id}".encode()).digest()[:8], "big")
    return drawn < share * 2**64


@dataclass(frozen=True)
class _Positive:
    """A click usable for training, with its feed and the clicks before that feed, oldest first."""

    news_id: str
    feed: Shown
    history: tuple[str, ...]


@dataclass(frozen=True)
class ReaderSamples:
    """A reader's feeds and clicks as a source of samples.

    Args:
        feeds: feeds with at least one click.
        clicks: the reader's clicks, oldest first.
        vectors: vectors of the articles in the other arguments; articles without one are left out.
        others: articles to draw negatives from if a feed has none.
        contexts: the feature contexts of past feeds; needed if features are requested.
        mark: the state at the time of reading.

    Sensitive: only a clipped and noisy gradient of it may leave the device.
    """

    feeds: Sequence[Shown]
    clicks: Sequence[Click]
    vectors: Vectors
    others: Sequence[str] = ()
    contexts: FeatureContextAt | None = None
    mark: ReadingMark | None = None
    _positives: list[_Positive] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_positives", self._find_positives(lambda news_id: news_id in self.vectors))

    @property
    def available(self) -> int:
        """How many clicks can be made into samples."""
        return len(self._positives)

    def without_held_out(self, share: float) -> ReaderSamples:
        """Return this source without the held-out clicks, for gradients.

        They remain in the histories of later clicks.
        """
        return self._part(lambda positive: not is_held_out(positive.feed.feed_id, positive.news_id, share))

    def held_out(self, share: float) -> ReaderSamples:
        """Return this source with only the held-out clicks, for evaluation."""
        return self._part(lambda positive: is_held_out(positive.feed.feed_id, positive.news_id, share))

    def with_all_negatives(self) -> ReaderSamples:
        """Return this source with the negatives of Uni-FedRec's recall model: any article displayed to the reader and
        never clicked.

        `others` count as displayed.
        """
        displayed = dict.fromkeys((*(news_id for feed in self.feeds for news_id in feed.shown), *self.others))
        part = copy.copy(self)
        object.__setattr__(part, "others", tuple(displayed))
        object.__setattr__(part, "feeds", tuple(replace(feed, shown=feed.clicked) for feed in self.feeds))
        part.__post_init__()
        return part

    def _part(self, wanted: Callable[[_Positive], bool]) -> ReaderSamples:
        part = copy.copy(self)
        object.__setattr__(part, "_positives", [positive for positive in self._positives if wanted(positive)])
        return part

    def draw(self, *, negatives: int, limit: int, rng: np.random.Generator, features: tuple[str, ...] = ()) -> Samples:
        """Draw new samples.

        The history is what was clicked before the feed was shown, without the click itself and later ones. K negatives
        are drawn with replacement from articles of the same feed that were viewed and not clicked; a feed without any
        draws them from `others`. Padding is never a negative. If there are more clicks than `limit`, a random choice of
        them is used. Features are those at the time the feed was shown, from that same history. Requested features
        don't change anything else. Raises ValueError if there is nothing to draw from, or for features without
        contexts.
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
        """Draw like `draw`, with articles given by their rows in a table of distinct articles."""
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
            raise ValueError("samples: the reader has no click with an earlier click as its history")
        chosen = [self._positives[place] for place in rng.permutation(len(self._positives))[:limit]]
        return chosen, [self._offered(positive, negatives, rng) for positive in chosen]

    def _offered(self, positive: _Positive, negatives: int, rng: np.random.Generator) -> tuple[str, ...]:
        """Return the clicked article and K others."""
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


FEEDS_LIMIT = 50
CLICKS_READ = 500
OTHERS_LIMIT = 200
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class StoredSamples:
    """The reader's feeds, clicks and article vectors, read while a round is under way.

    half_life_hours is the feed's own, so that a ranker learns from the recency it is served with. counted is the log of
    contributions to private counts; without one nothing is contributed. muted names clicked articles of muted
    interests, which are not used for training.
    """

    def __init__(
        self,
        clicks: Clicks,
        impressions: ImpressionStore,
        store: NewsStore,
        *,
        half_life_hours: float,
        counted: CountLog | None = None,
        muted: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._clicks, self._impressions, self._store, self._counted = clicks, impressions, store, counted
        self._half_life_hours, self._muted = half_life_hours, muted

    def count(self) -> int:
        """Return how many clicks the device has stored."""
        return self._clicks.count()

    def mark(self) -> ReadingMark:
        """Return a mark of the state that a computation starting now reads."""
        newest = self._clicks.latest_id()
        return ReadingMark(newest, self._clicks.count_up_to(newest), self._muted())

    def holds(self, mark: ReadingMark) -> bool:
        """Return whether nothing was deleted, muted or erased since this mark."""
        kept = self._clicks.count_up_to(mark.newest) == mark.clicks and self._clicks.latest_id() >= mark.newest
        return kept and self._muted() <= mark.muted

    @property
    def counts(self) -> bool:
        """Whether this device contributes to private counts."""
        return self._counted is not None

    def uncounted(self, now: datetime, longest: timedelta) -> CountWindow:
        """Return displays and clicks that may be contributed to a private count now.

        Raises NotEligible.
        """
        if self._counted is None:
            raise NotEligible("nothing is counted here.")
        return self._counted.window(now, longest)

    def take_count(self, taken: PaidCount) -> None:
        """Spend a window; call it in the transaction that records the charge."""
        assert self._counted is not None, "without it there is no window"
        self._counted.take(taken)

    def samples(self, encoder: str, others_limit: int | None = OTHERS_LIMIT) -> ReaderSamples:
        """Return the source of samples with vectors by `encoder`; fallback negatives are articles of other feeds.

        others_limit: the maximum number of these; None: all that were ever displayed.
        """
        mark = self.mark()
        feeds = self._impressions.for_training(FEEDS_LIMIT)
        clicks = self._active()
        others = sorted(self._impressions.seen(LONG_AGO))[:others_limit]
        named = {news_id for feed in feeds for news_id in (*feed.shown, *feed.clicked)}
        ids = sorted(named | {click.news_id for click in clicks} | set(others))
        present, vectors = self._store.vectors(ids, encoder)
        muted = self._muted()
        held = {news_id: vectors[row] for row, news_id in enumerate(ids) if present[row] and news_id not in muted}
        past = _Past(self._store, self._impressions, self._half_life_hours)
        return ReaderSamples(
            feeds=feeds,
            clicks=clicks,
            vectors=held,
            others=others,
            contexts=past.context_features,
            mark=mark,
        )

    def clicked(self, encoder: str) -> NDArray[np.float32]:
        """Return vectors [H, D] of the newest clicks, oldest first, from which a report is made.

        [0, 0] if there are none.
        """
        clicks = self._active()[-CLICKS_LIMIT:]
        present, vectors = self._store.vectors([click.news_id for click in clicks], encoder)
        return vectors[present] if present.any() else np.empty((0, 0), dtype=np.float32)

    def _active(self) -> list[Click]:
        muted = self._muted()
        return [click for click in self._clicks.recent(CLICKS_READ) if click.news_id not in muted]


@dataclass(frozen=True)
class EmptyHistory:
    """An empty history, for when only the form of an update is needed.

    counts: whether the device contributes to private counts.
    """

    counts: bool = True

    def count(self) -> int:
        return 0

    def clicked(self, encoder: str) -> NDArray[np.float32]:
        """Return an empty array [0, 0]."""
        return np.empty((0, 0), dtype=np.float32)

    def uncounted(self, now: datetime, longest: timedelta) -> CountWindow:
        """Return an empty window. Raises NotEligible like `StoredSamples.uncounted`."""
        if not self.counts:
            raise NotEligible("nothing is counted here.")
        return CountWindow(now, now, frozenset(), frozenset())

    def take_count(self, taken: PaidCount) -> None:
        """Do nothing: there is nothing to spend."""

    def holds(self, mark: ReadingMark) -> bool:
        """Return True: nothing was read that could be deleted."""
        return True


class _Past:
    """What a ranker with features could know at past feeds. Cards are read on first use."""

    def __init__(self, store: NewsStore, impressions: ImpressionStore, half_life_hours: float) -> None:
        self._store, self._impressions, self._half_life_hours = store, impressions, half_life_hours
        self._cards: dict[str, NewsCard] = {}

    def context_features(self, candidates: Sequence[str], clicks: Sequence[str], at: datetime) -> FeatureContext:
        """Return the feature context at that time, computed by the same code as serving.

        Raises NewsNotHere if a card was deleted meanwhile.
        """
        cards = self._read(candidates)
        then = self._impressions.popularity_at(candidates, at)
        return feature_context_at(
            Candidates(cards, np.zeros((len(cards), 0), np.float32), ""),
            self._read(clicks),
            at,
            self._half_life_hours,
            np.array([then.get(news_id, 0.0) for news_id in candidates]),
        )

    def _read(self, ids: Sequence[str]) -> tuple[NewsCard, ...]:
        new = [news_id for news_id in dict.fromkeys(ids) if news_id not in self._cards]
        self._cards.update((card.id, card) for card in self._store.cards(new))
        for news_id in new:
            if news_id not in self._cards:
                raise NewsNotHere(news_id)
        return tuple(self._cards[news_id] for news_id in ids)
