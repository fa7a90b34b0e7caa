"""What simulated readers like and open. Oracle: the stated probabilities, over many draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from device_app.feed.item import Feed, FeedItem, Reason
from device_app.fleet.simulated_interests import (
    CHANCE_FAVOURITE,
    CHANCE_OTHER,
    CHANCE_SECTION,
    FAVOURITES,
    POSITION_FADE,
    SimulatedInterests,
)
from tests.doubles.news import NOW, card, synthetic_pool

LIKES_ROWING = SimulatedInterests({("sport", "rowing"): 0.8})
DRAWS = 4_000


def item(section: str, topic: str, position: int = 0) -> FeedItem:
    shown = card(f"{topic}-{position}", section=section, topic=topic)
    return FeedItem(shown, position, "for_you", Reason("editors", "Recent."), 0.0)


def feed(*items: FeedItem) -> Feed:
    placed = tuple(replace(one, position=at) for at, one in enumerate(items))
    return Feed("feed-1", NOW, "r1", placed, "personal")


@pytest.mark.parametrize(
    ("shown", "chance"),
    [
        (item("sport", "rowing"), CHANCE_FAVOURITE * 0.8),
        (item("sport", "tennis"), CHANCE_SECTION),
        (item("science", "rowing"), CHANCE_OTHER),
        (item("sport", "rowing", position=29), CHANCE_FAVOURITE * 0.8 / (1 + 29 * POSITION_FADE)),
    ],
)
def test_opening_probability_falls_with_distance_and_position(shown: FeedItem, chance: float) -> None:
    assert LIKES_ROWING.chance(shown) == pytest.approx(chance)


def test_stories_are_opened_at_their_probability_from_the_top_down() -> None:
    rng = np.random.default_rng(1)
    page = feed(*[item("sport", "rowing", at) for at in range(5)], *[item("arts", "opera", at) for at in range(5)])
    counts = np.zeros(10)
    for _ in range(DRAWS):
        opened = [one.position for one in LIKES_ROWING.opened(page, rng)]
        assert opened == sorted(opened)
        counts[opened] += 1
    wanted = np.array([LIKES_ROWING.chance(one) for one in page.items])
    spread = np.sqrt(wanted * (1 - wanted) / DRAWS)
    assert (np.abs(counts / DRAWS - wanted) < 5 * spread).all()


def test_simulated_interests_are_a_few_topics_and_repeat_with_the_seed() -> None:
    cards = synthetic_pool().cards
    topics = {(one.section, one.topic) for one in cards}
    drawn = [SimulatedInterests.drawn(cards, np.random.default_rng([7, number])) for number in range(200)]
    sizes = {len(one.favourites) for one in drawn}
    assert sizes == set(range(FAVOURITES[0], FAVOURITES[1] + 1))
    assert all(set(one.favourites) <= topics for one in drawn)
    assert {topic for one in drawn for topic in one.favourites} == topics, "every topic has its readers"
    assert all(0 < weight <= 1 for one in drawn for weight in one.favourites.values())
    assert SimulatedInterests.drawn(cards, np.random.default_rng([7, 3])) == drawn[3] != drawn[4]


def test_simulated_readers_of_a_list_with_one_topic_like_that_topic() -> None:
    assert set(SimulatedInterests.drawn([card("a")], np.random.default_rng(0)).favourites) == {
        ("sport", "sport rowing")
    }
