"""Readers with planted interests over synthetic articles.

Each likes a few topics and clicks on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from device_app.store.clicks import Click
from device_app.store.impressions import Shown
from device_app.training.samples import ReaderSamples
from tests.doubles.news import NOW, SyntheticPool

FEEDS = 8
LIKED_A_FEED = 2
SHOWN_A_FEED = 12


@dataclass(frozen=True)
class PlantedReader:
    """feeds oldest first; clicks oldest first."""

    feeds: tuple[Shown, ...]
    clicks: tuple[Click, ...]

    def samples(self, pool: SyntheticPool) -> ReaderSamples:
        vectors = {card.id: vector for card, vector in zip(pool.cards, pool.vectors, strict=True)}
        return ReaderSamples(feeds=self.feeds, clicks=self.clicks, vectors=vectors)


def simulated_reader(pool: SyntheticPool, rng: np.random.Generator) -> PlantedReader:
    """A reader of 2 to 4 topics, who clicks two matching articles of each feed and skips ten random others."""
    topics = sorted({card.topic for card in pool.cards})
    mine = rng.choice(len(topics), size=rng.integers(2, 5), replace=False)
    feeds: list[Shown] = []
    clicks: list[Click] = []
    for number in range(FEEDS):
        at = NOW + timedelta(hours=number)
        liked = [
            pool.cards[int(rng.choice(pool.of_topic(topics[topic])))].id
            for topic in rng.choice(mine, size=LIKED_A_FEED)
        ]
        clicked = tuple(dict.fromkeys(liked))
        others = [pool.cards[int(row)].id for row in rng.choice(len(pool.cards), size=SHOWN_A_FEED - LIKED_A_FEED)]
        feed_id = f"feed{number}"
        feeds.append(Shown(feed_id, at, tuple(dict.fromkeys((*clicked, *others))), clicked))
        clicks += [
            Click(len(clicks) + place, news_id, feed_id, at + timedelta(minutes=place + 1))
            for place, news_id in enumerate(clicked)
        ]
    return PlantedReader(tuple(feeds), tuple(clicks))
