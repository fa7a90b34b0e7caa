"""Gathers a reader's samples from the device's store."""

from __future__ import annotations

from datetime import UTC, datetime

from device_app.store.clicks import Clicks
from device_app.store.impressions import Impressions
from device_app.store.news_shelf import NewsShelf
from device_app.training.samples import ReaderSamples

FEEDS_LIMIT = 50
CLICKS_READ = 500
OTHERS_LIMIT = 200
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Reading:
    """The reader's feeds, clicks and news vectors, read when a round is under way."""

    def __init__(self, clicks: Clicks, impressions: Impressions, shelf: NewsShelf) -> None:
        self._clicks, self._impressions, self._shelf = clicks, impressions, shelf

    def count(self) -> int:
        """How many clicks the device holds."""
        return self._clicks.count()

    def samples(self, encoder: str) -> ReaderSamples:
        """What samples are drawn from, with vectors by `encoder`; spare negatives are news of other feeds."""
        feeds = self._impressions.for_training(FEEDS_LIMIT)
        clicks = self._clicks.recent(CLICKS_READ)
        others = sorted(self._impressions.seen(LONG_AGO))[:OTHERS_LIMIT]
        named = {news_id for feed in feeds for news_id in (*feed.shown, *feed.clicked)}
        ids = sorted(named | {click.news_id for click in clicks} | set(others))
        present, vectors = self._shelf.vectors(ids, encoder)
        held = {news_id: vectors[row] for row, news_id in enumerate(ids) if present[row]}
        return ReaderSamples(feeds=feeds, clicks=clicks, vectors=held, others=others)
