"""The first release ranks by content and features, live on a device; the reader may choose another ranker of it."""

from __future__ import annotations

import numpy as np
import pytest

from device_app.device import Device
from device_app.feed.item import Feed
from device_app.ranking.features import Situation, feature_columns
from device_app.ranking.ranker import Ranker
from device_app.settings import FeedSettings, PerformanceSettings
from tests.doubles.small_world import World

ALWAYS_ASKS = PerformanceSettings(recall_max_age_sec=0, front_limit=200, bodies_wait_sec=0.2)
CLICKED = 5


def read_rowing(device: Device) -> Feed:
    """The feed after five clicks on news of rowing, a topic of the section sport."""
    cold = device.feed()
    cards = {card.id: card for shelf in device.explore() for card in shelf.cards if card.topic == "rowing"}
    for news_id in list(cards)[:CLICKED]:
        device.open(news_id, cold.feed_id)
    return device.feed()


def test_a_device_ranks_by_the_releases_features_unless_its_reader_chooses_otherwise(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[tuple[str, Situation, np.ndarray]] = []
    score = Ranker.score

    def overhear(
        self: Ranker, clicks: np.ndarray, candidates: np.ndarray, situation: Situation | None = None
    ) -> np.ndarray:
        found = score(self, clicks, candidates, situation)
        assert situation is not None
        scored.append((self.name, situation, found))
        return found

    monkeypatch.setattr(Ranker, "score", overhear)
    device = world.device("by-features", performance=ALWAYS_ASKS)
    read_rowing(device)
    release = device.release()
    assert release is not None
    features = release.manifest.models["ranker.features"].features
    weights = release.weights("ranker.features")["feature_weights"]
    (name, _, cold), (_, seen, warm) = scored[0], scored[-1]
    assert name == release.manifest.default_ranker == "ranker.features"
    assert cold.std() > 0, "without clicks recency decides"

    chosen = world.device("by-content", performance=ALWAYS_ASKS, feed=FeedSettings(ranker="ranker.cosine"))
    read_rowing(chosen)
    assert scored[-1][0] == "ranker.cosine"

    columns = feature_columns(features, seen)
    affinity = columns[:, features.index("topic_affinity")]
    assert set(np.unique(affinity)) == {0.0, 1.0}, "all clicks were on one topic"
    monkeypatch.undo()
    models = release.manifest.models["ranker.cosine"]
    assert models.features == ()
    known = columns @ weights
    fit = warm - known
    assert np.abs(fit).max() <= 1 + 1e-5, "what is left without the features is a mean of cosines"
    assert known[affinity == 1].min() >= known[affinity == 0].max(), "rowing gains most by its features"
