"""The first release ranks by content and features, live on a device.

The reader may choose another of its rankers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from device_app.device import Device
from device_app.feed.item import Feed
from device_app.ranking.ranker import FeatureContext, Ranker, feature_columns
from device_app.settings import FeedSettings, PerformanceSettings
from tests.doubles.new_page import new_page
from tests.doubles.small_world import SmallWorld

ALWAYS_ASKS = PerformanceSettings(default_list_limit=200, bodies_wait_sec=0.2)
CLICKED = 5


def read_rowing(device: Device) -> Feed:
    """Return the feed after five clicks on articles about rowing, a topic of the section sport."""
    cold = new_page(device)
    cards = {card.id: card for listed in device.reading.explore() for card in listed.cards if card.topic == "rowing"}
    for news_id in list(cards)[:CLICKED]:
        device.reading.open(news_id, cold.feed_id)
    return new_page(device)


def test_device_ranks_by_release_features_unless_the_reader_chooses_otherwise(
    world: SmallWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[RankerCall] = []
    score = Ranker.score

    def recording(
        self: Ranker, clicks: np.ndarray, candidates: np.ndarray, context_features: FeatureContext | None = None
    ) -> np.ndarray:
        found = score(self, clicks, candidates, context_features)
        assert context_features is not None
        received.append(RankerCall(self.name, clicks, candidates, context_features, found))
        return found

    monkeypatch.setattr(Ranker, "score", recording)
    device = world.device("by-features", performance=ALWAYS_ASKS)
    read_rowing(device)
    cold, warm = received[0], received[-1]
    chosen = world.device("by-content", performance=ALWAYS_ASKS, feed=FeedSettings(ranker="ranker.cosine"))
    read_rowing(chosen)
    monkeypatch.undo()

    release = device.release()
    assert release is not None
    assert cold.ranker == warm.ranker == release.manifest.default_ranker == "ranker.features"
    assert received[-1].ranker == "ranker.cosine"
    assert cold.scores.std() > 0, "without clicks the features decide"

    names, weights = release.manifest.models["ranker.features"].features, release.weights("ranker.features")
    columns = feature_columns(names, warm.context_features)
    affinity = columns[:, names.index("topic_affinity")]
    assert set(np.unique(affinity)) == {0.0, 1.0}, "all clicks were on one topic"
    fit = softmax_cosine(warm.clicks, warm.candidates, float(weights["matching.beta"]))
    np.testing.assert_allclose(warm.scores, fit + columns @ weights["feature_weights"], atol=1e-5)


@dataclass(frozen=True)
class RankerCall:
    """The input and the scores of one call of a ranker."""

    ranker: str
    clicks: np.ndarray
    candidates: np.ndarray
    context_features: FeatureContext
    scores: np.ndarray


def softmax_cosine(clicks: np.ndarray, candidates: np.ndarray, beta: float) -> np.ndarray:
    """Return the ranker's initial score in float64, where the metric is 1."""
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (clicks.astype(float), candidates)]
    cosines = units[1] @ units[0].T
    sharp = np.exp(beta * cosines)
    return np.asarray((sharp / sharp.sum(axis=1, keepdims=True) * cosines).sum(axis=1))
