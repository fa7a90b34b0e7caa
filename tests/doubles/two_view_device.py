"""A reader's device without network whose two views have data; and noise that is exactly zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from device_app.store.database import Database
from device_app.store.searches import SearchVector
from device_app.stores import DeviceStores
from device_app.training.multiview.job import ViewTerms
from device_app.training.multiview.local import LocalViews
from device_app.training.tasks.multi_view import MultiViewTask
from tests.doubles.news import NOW, SyntheticPool, synthetic_pool
from tests.doubles.simulated_reader import simulated_reader
from tests.doubles.view_graph import ViewModel, view_model
from tests.doubles.views_in_process import ViewsInProcess

DIM = 8
ENCODER, MODEL, ROUND = "enc", "ranker.multi_view", "round-1"


class NoNoise:
    """Random bits of which the Gaussian sampler makes exactly 0: u = 1/2."""

    def uniform_bits(self, n: int) -> bytes:
        return b"\xff" * n


@dataclass
class TwoViewDevice:
    """A reader's device without its network: two views with data."""

    stores: DeviceStores
    pool: SyntheticPool
    model: ViewModel

    @classmethod
    def make(cls, folder: Path, *, searches: bool = True, semi: bool = True) -> TwoViewDevice:
        pool = synthetic_pool(120, dim=DIM)
        home = cls(DeviceStores(folder / "device.sqlite"), pool, view_model(DIM, semi=semi))
        reader = simulated_reader(pool, np.random.default_rng(1))
        home.stores.news.put(list(pool.cards), pool.vectors, ENCODER, NOW)
        for feed in reader.feeds:
            home.stores.impressions.record(feed.feed_id, feed.shown, feed.at)
        for click in reader.clicks:
            home.stores.clicks.add(click.news_id, click.feed_id, click.at)
        if searches:
            kept = home.stores.searches
            kept.save("ships", NOW)
            kept.keep_meaning(SearchVector("search", "ships", ENCODER, pool.vectors[0], NOW))
            for row in (1, 2, 3):
                kept.opened(pool.cards[row].id, NOW + timedelta(minutes=row))
                kept.keep_meaning(SearchVector("news", pool.cards[row].id, ENCODER, pool.vectors[row], NOW))
        return home

    def views(self, source: object, *, weakest: float = 0.001) -> LocalViews:
        database = self.stores.search_database
        return LocalViews(
            stores={
                "reading": lambda: self.stores.database.path,
                "searches": lambda: database.path if database.known() else None,
            },
            items=lambda _: (tuple(card.id for card in self.pool.cards), self.pool.vectors),
            prepare=lambda _: None,
            processes=ViewsInProcess(source, self.store),  # type: ignore[arg-type]
            log=self.stores.view_log,
            weakest_sigma=lambda: weakest,
            clock=lambda: NOW,
            source=source,  # type: ignore[arg-type]
        )

    def store(self, path: Path) -> Database:
        if path == self.stores.database.path:
            return self.stores.database
        known = self.stores.search_database.known()
        assert known is not None
        assert known.path == path
        return known

    def task(self, source: object, terms: ViewTerms) -> MultiViewTask:
        return MultiViewTask(
            self.views(source),
            terms,
            ROUND,
            MODEL,
            ENCODER,
            self.model.graphs["gradient"],
            negatives=4,
            samples_limit=16,
        )

    def run(self, source: object, terms: ViewTerms, seed: int = 7) -> Mapping[str, NDArray[np.float32]]:
        update = self.task(source, terms).run(self.model.shared, None, None, np.random.default_rng(seed))  # type: ignore[arg-type]
        assert (update.loss, update.samples) == (0.0, 1)
        return update.tensors
