"""Gathers a reader's samples from the device's store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from device_app.errors import NewsNotHere, NotEligible
from device_app.feed.candidates import Candidates
from device_app.feed.feature_context import feature_context_at
from device_app.ranking.features import FeatureContext
from device_app.store.clicks import Click, Clicks
from device_app.store.count_log import CountLog, CountTaken, CountWindow
from device_app.store.impressions import ImpressionStore
from device_app.store.news import NewsStore
from device_app.training.samples import ReaderSamples, ReadingMark
from device_app.wire.news import NewsCard
from device_app.wire.recall import CLICKS_LIMIT

FEEDS_LIMIT = 50
CLICKS_READ = 500
OTHERS_LIMIT = 200
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class StoredSamples:
    """The reader's feeds, clicks and news vectors, read when a round is under way.

    half_life_hours is the feed's own, so that a ranker learns from the recency it is served with. counted knows what
    was contributed to private counts; a view that has none contributes to none. muted names clicked news of
    muted interests, which nothing is learnt from.
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
        """How many clicks the device holds."""
        return self._clicks.count()

    def mark(self) -> ReadingMark:
        """Of what a computation reads from now on."""
        newest = self._clicks.latest_id()
        return ReadingMark(newest, self._clicks.count_up_to(newest), self._muted())

    def holds(self, mark: ReadingMark) -> bool:
        """Whether all that was there at that mark is there still, and nothing was muted or erased since."""
        kept = self._clicks.count_up_to(mark.newest) == mark.clicks and self._clicks.latest_id() >= mark.newest
        return kept and self._muted() <= mark.muted

    def quiet_since(self, moment: datetime) -> bool:
        """Whether the reader was served nothing, looked at nothing and opened nothing at or after that moment."""
        newest = self._clicks.recent(1)
        return not self._impressions.active_since(moment) and not (newest and newest[0].at >= moment)

    def uncounted(self, now: datetime, longest: timedelta) -> CountWindow:
        """Displays and clicks that may be contributed to a private count now. Raises NotEligible."""
        if self._counted is None:
            raise NotEligible("nothing is counted here.")
        return self._counted.window(now, longest)

    def take_count(self, taken: CountTaken) -> None:
        """Spend a window; call it in the transaction that pays."""
        assert self._counted is not None, "without it there is no window"
        self._counted.take(taken)

    def samples(self, encoder: str) -> ReaderSamples:
        """What samples are drawn from, with vectors by `encoder`; spare negatives are news of other feeds."""
        mark = self.mark()
        feeds = self._impressions.for_training(FEEDS_LIMIT)
        clicks = self._active()
        others = sorted(self._impressions.seen(LONG_AGO))[:OTHERS_LIMIT]
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
            muted=muted,
            mark=mark,
        )

    def clicked(self, encoder: str) -> NDArray[np.float32]:
        """Vectors [H, D] of the newest clicks, oldest first, as a report is made of them; [0, 0] if there are none."""
        clicks = self._active()[-CLICKS_LIMIT:]
        present, vectors = self._store.vectors([click.news_id for click in clicks], encoder)
        return vectors[present] if present.any() else np.empty((0, 0), dtype=np.float32)

    def _active(self) -> list[Click]:
        muted = self._muted()
        return [click for click in self._clicks.recent(CLICKS_READ) if click.news_id not in muted]


class _Past:
    """What a ranker with features could know at past feeds. Cards are read when they are first asked for."""

    def __init__(self, store: NewsStore, impressions: ImpressionStore, half_life_hours: float) -> None:
        self._store, self._impressions, self._half_life_hours = store, impressions, half_life_hours
        self._cards: dict[str, NewsCard] = {}

    def context_features(self, candidates: Sequence[str], clicks: Sequence[str], at: datetime) -> FeatureContext:
        """By the code that serves. Raises NewsNotHere if a card has left the store meanwhile."""
        asked = self._read(candidates)
        then = self._impressions.popularity_at(candidates, at)
        return feature_context_at(
            Candidates(asked, np.zeros((len(asked), 0), np.float32), ""),
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
