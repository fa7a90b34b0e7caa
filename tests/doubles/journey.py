"""One reader's way through a feed: a preferred topic, and clicks on it."""

from __future__ import annotations

from collections.abc import Callable

from device_app.device import Device
from device_app.feed.item import Feed
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock

TOPIC = "section2 topic1"
Make = Callable[..., Device]
PAPER = {
    "mode": "basis_laplace",
    "epsilon_per_day_reports": 150,
    "epsilon_lifetime_reports": None,
    "clicks_before_report": 1,
    "clicks_per_report": 5,
}
"""Uni-FedRec's own report, which needs a larger daily budget."""


def share(feed: Feed, topic: str) -> float:
    personal = feed.in_slot("lead", "for_you")
    return sum(item.card.topic == topic for item in personal) / len(personal)


def click_on(device: Device, backend: FakeBackend, topic: str, clicks: int, clock: StillClock) -> None:
    """Open articles of a topic from the default list, as a reader of Explore would."""
    default_list = {card.id for listed in device.reading.explore() for card in listed.cards}
    wanted = [row for row in backend.pool.of_topic(topic) if backend.pool.cards[row].id in default_list]
    assert len(wanted) >= clicks
    for row in wanted[:clicks]:
        clock.go_on(30)
        device.reading.open(backend.pool.cards[row].id)
