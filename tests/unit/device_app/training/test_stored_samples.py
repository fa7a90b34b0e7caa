"""Samples from a device's store: a ranker with features learns only from what was known when it ranked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from device_app.errors import NewsNotHere
from device_app.stores import DeviceStores
from device_app.training.samples import StoredSamples
from tests.doubles.news import NOW, card

ENCODER = "test-encoder"
HALF_LIFE_HOURS = 12.0
NAMES = ("section_affinity", "topic_affinity", "recency", "popularity")
TOPICS = {"a": "rowing", "b": "rowing", "c": "tennis", "d": "cycling", "e": "tennis", "f": "tennis"}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[DeviceStores]:
    """Feed 1 shows a, b, d and a is clicked; feed 2, an hour later, shows b, c, d and c is clicked; then e and f."""
    made = DeviceStores(tmp_path / "device.sqlite")
    cards = [
        card(news_id, section="sport" if topic != "cycling" else "travel", topic=topic, published_at=NOW - days(number))
        for number, (news_id, topic) in enumerate(TOPICS.items())
    ]
    made.news.put(cards, np.eye(len(cards), dtype=np.float32), ENCODER, NOW)
    made.impressions.record("feed1", ["a", "b", "d"], NOW)
    made.clicks.add("a", "feed1", NOW + minutes(1))
    made.impressions.record("feed2", ["b", "c", "d"], NOW + minutes(60))
    made.clicks.add("c", "feed2", NOW + minutes(61))
    made.clicks.add("e", None, NOW + minutes(62))
    made.clicks.add("f", None, NOW + minutes(63))
    yield made
    made.database.close()


def days(number: float) -> timedelta:
    return timedelta(days=number)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def reading(stores: DeviceStores) -> StoredSamples:
    return StoredSamples(stores.clicks, stores.impressions, stores.news, half_life_hours=HALF_LIFE_HOURS)


def features_of(stores: DeviceStores) -> dict[str, dict[str, float]]:
    """Return features by article and by name, of the only sample: c was clicked in feed 2."""
    drawn = reading(stores).samples(ENCODER).draw(negatives=16, limit=9, rng=np.random.default_rng(0), features=NAMES)
    assert drawn.features is not None
    assert drawn.features.shape == (1, 17, len(NAMES))
    ids = ["abcdef"[int(row.argmax())] for row in drawn.candidates[0]]
    assert set(ids) == {"b", "c", "d"}
    return {
        news_id: dict(zip(NAMES, map(float, row), strict=True))
        for news_id, row in zip(ids, drawn.features[0], strict=True)
    }


def recency_at(shown: datetime, published: datetime) -> float:
    return float(0.5 ** ((shown - published).total_seconds() / 3_600 / HALF_LIFE_HOURS))


def test_affinities_count_only_clicks_before_the_feed(stores: DeviceStores) -> None:
    found = features_of(stores)

    assert {news_id: one["topic_affinity"] for news_id, one in found.items()} == {"b": 1.0, "c": 0.0, "d": 0.0}, (
        "one click on rowing came before; the clicks on tennis came later"
    )
    assert {news_id: one["section_affinity"] for news_id, one in found.items()} == {"b": 1.0, "c": 1.0, "d": 0.0}
    assert {one["popularity"] for one in found.values()} == {0.0}, "no card says how often it was read"


def test_recency_is_taken_at_the_moment_of_display(stores: DeviceStores) -> None:
    found = features_of(stores)

    for news_id, one in found.items():
        published = NOW - days("abcdef".index(news_id))
        assert one["recency"] == pytest.approx(recency_at(NOW + minutes(60), published), rel=1e-6)


def test_requesting_features_leaves_the_samples_unchanged(stores: DeviceStores) -> None:
    source = reading(stores).samples(ENCODER)
    with_them, without = (
        source.draw(negatives=4, limit=9, rng=np.random.default_rng(2), features=names) for names in (NAMES, ())
    )

    assert without.features is None
    for name in ("clicks", "click_mask", "candidates"):
        np.testing.assert_array_equal(getattr(with_them, name), getattr(without, name))


def test_card_removed_meanwhile_is_named_in_the_error(stores: DeviceStores) -> None:
    source = reading(stores).samples(ENCODER)
    with stores.database.transaction():
        stores.database.write("DELETE FROM news WHERE id = 'a'")

    with pytest.raises(NewsNotHere):
        source.draw(negatives=4, limit=9, rng=np.random.default_rng(2), features=NAMES)
