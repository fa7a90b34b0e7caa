from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from device_app.store.clicks import Click
from device_app.store.impressions import Shown
from device_app.training.samples import ReaderSamples

MORNING = datetime(2026, 11, 20, 8, tzinfo=UTC)


def vector_of(news_id: str) -> NDArray[np.float32]:
    """Encode an article's number in its first coordinate: 'n7' is 7."""
    return np.array([float(news_id[1:]), 1.0], dtype=np.float32)


def vectors(*ids: str) -> dict[str, NDArray[np.float32]]:
    return {news_id: vector_of(news_id) for news_id in ids}


def shown_feed(number: int, items: str, clicked: str) -> Shown:
    return Shown(f"feed{number}", MORNING + timedelta(hours=number), tuple(items.split()), tuple(clicked.split()))


def click(number: int, news_id: str, minutes: int = 5) -> Click:
    return Click(number, news_id, f"feed{number}", MORNING + timedelta(hours=number, minutes=minutes))


def names(rows: NDArray[np.float32]) -> list[int]:
    return [int(row[0]) for row in rows.reshape(-1, 2)]


TWO_FEEDS = (shown_feed(1, "n1 n2 n3", "n1"), shown_feed(2, "n4 n5 n6 n7", "n4"))
TWO_CLICKS = (click(1, "n1"), click(2, "n4"))
ALL = vectors(*(f"n{number}" for number in range(1, 10)))


def test_history_holds_the_clicks_before_the_feed_padded_on_the_left() -> None:
    source = ReaderSamples(feeds=TWO_FEEDS, clicks=TWO_CLICKS, vectors=ALL)
    drawn = source.draw(negatives=4, limit=10, rng=np.random.default_rng(0))

    assert len(drawn) == source.available == 1, "the first feed has nothing before it"
    assert drawn.clicks.shape == (1, 50, 2)
    assert drawn.candidates.shape == (1, 5, 2)
    assert drawn.click_mask[0].tolist() == [0.0] * 49 + [1.0]
    assert names(drawn.clicks[0, -1]) == [1]
    assert not drawn.clicks[0, :-1].any()


def test_click_after_the_feed_was_shown_is_not_history() -> None:
    late = Click(3, "n9", "feed1", MORNING + timedelta(hours=2, minutes=1))
    source = ReaderSamples(feeds=TWO_FEEDS, clicks=(*TWO_CLICKS, late), vectors=ALL)
    drawn = source.draw(negatives=4, limit=10, rng=np.random.default_rng(0))

    assert names(drawn.clicks[0, -1]) == [1]
    assert drawn.click_mask.sum() == 1


def test_only_the_last_fifty_clicks_count_newest_last() -> None:
    before = [Click(n, f"n{n}", "old", MORNING - timedelta(minutes=100 - n)) for n in range(1, 61)]
    feed = shown_feed(2, "n70 n71", "n70")
    source = ReaderSamples(feeds=[feed], clicks=before, vectors=vectors(*(f"n{n}" for n in range(1, 61)), "n70", "n71"))
    drawn = source.draw(negatives=1, limit=1, rng=np.random.default_rng(0))

    assert names(drawn.clicks[0]) == list(range(11, 61))


def test_clicked_article_is_first_and_negatives_come_from_its_feed() -> None:
    source = ReaderSamples(feeds=TWO_FEEDS, clicks=TWO_CLICKS, vectors=ALL, others=["n9"])
    for seed in range(30):
        drawn = names(source.draw(negatives=4, limit=10, rng=np.random.default_rng(seed)).candidates[0])
        assert drawn[0] == 4
        assert set(drawn[1:]) <= {5, 6, 7}


def test_too_few_negatives_are_drawn_with_replacement() -> None:
    feeds = (TWO_FEEDS[0], shown_feed(2, "n4 n5", "n4"))
    drawn = ReaderSamples(feeds=feeds, clicks=TWO_CLICKS, vectors=ALL).draw(
        negatives=4, limit=10, rng=np.random.default_rng(0)
    )

    assert names(drawn.candidates[0]) == [4, 5, 5, 5, 5]


def test_feed_without_unclicked_stories_draws_negatives_from_others() -> None:
    feeds = (TWO_FEEDS[0], shown_feed(2, "n4", "n4"))
    source = ReaderSamples(feeds=feeds, clicks=TWO_CLICKS, vectors=ALL, others=["n1", "n4", "n8", "n9"])
    seen = set()
    for seed in range(20):
        seen |= set(names(source.draw(negatives=4, limit=9, rng=np.random.default_rng(seed)).candidates[0])[1:])

    assert seen == {8, 9}


def test_without_any_negative_there_is_no_sample() -> None:
    feeds = (TWO_FEEDS[0], shown_feed(2, "n4", "n4"))
    source = ReaderSamples(feeds=feeds, clicks=TWO_CLICKS, vectors=ALL, others=["n1", "n4"])

    assert source.available == 0
    with pytest.raises(ValueError, match="no click with an earlier click"):
        source.draw(negatives=4, limit=10, rng=np.random.default_rng(0))


def test_article_without_a_vector_is_left_out_everywhere() -> None:
    clicks = (Click(0, "n3", "feed0", MORNING), *TWO_CLICKS)
    source = ReaderSamples(feeds=TWO_FEEDS, clicks=clicks, vectors=vectors("n3", "n4", "n6"))
    drawn = source.draw(negatives=4, limit=10, rng=np.random.default_rng(0))

    assert names(drawn.clicks[0, -1]) == [3], "n1 has no vector"
    assert drawn.click_mask.sum() == 1
    assert names(drawn.candidates[0]) == [4, 6, 6, 6, 6]


def test_negatives_depend_on_the_random_stream() -> None:
    feeds = (TWO_FEEDS[0], shown_feed(2, " ".join(f"n{n}" for n in range(4, 10)), "n4"))
    source = ReaderSamples(feeds=feeds, clicks=TWO_CLICKS, vectors=ALL)

    def drawn(seed: int) -> list[int]:
        return names(source.draw(negatives=4, limit=10, rng=np.random.default_rng(seed)).candidates[0])

    assert drawn(1) == drawn(1)
    assert len({tuple(drawn(seed)) for seed in range(10)}) > 5


def test_limit_on_samples_picks_distinct_clicks_at_random() -> None:
    feeds = [shown_feed(n, f"n{n} n9", f"n{n}") for n in range(1, 9)]
    clicks = [click(n, f"n{n}") for n in range(1, 9)]
    source = ReaderSamples(feeds=feeds, clicks=clicks, vectors=ALL)
    picked = [
        names(source.draw(negatives=1, limit=3, rng=np.random.default_rng(seed)).candidates[:, 0]) for seed in range(20)
    ]

    assert source.available == 7
    assert all(len(set(each)) == 3 for each in picked)
    assert {name for each in picked for name in each} == set(range(2, 9))
