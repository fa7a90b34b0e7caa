"""Every reason on a reader's pages names what this reader read or chose, or a fact that is true of the story.

Oracles: what the reader opened, the cards' own fields, and the time at which the page was made.
"""

from __future__ import annotations

import re
from datetime import timedelta

from device_app.device import Device
from device_app.feed.item import Feed, FeedItem
from device_app.feed.reasons import WHYS
from protocol.news import NewsCard
from tests.doubles.arrivals import stories_arrive
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import TOPIC, Make, click_on
from tests.doubles.new_page import new_page
from tests.doubles.news import card, synthetic_pool

PAGES = 6
MEAN_WEIGHT = sum(one.weight for one in synthetic_pool().cards) / len(synthetic_pool().cards)
UNUSED = WHYS("unused", said="").strip()


def is_true(item: FeedItem, feed: Feed, read: list[NewsCard], fresh_hours: float) -> bool:
    """Return whether the words of a reason hold for this story and this reader; they may be empty."""
    words, shown = item.reason.words.removesuffix(UNUSED).strip(), item.card
    is_recent = shown.counted_at >= feed.made_at - timedelta(hours=fresh_hours)
    if words in ("", WHYS("weighty")):
        return not words or shown.weight > MEAN_WEIGHT
    if words in (WHYS("recent"), WHYS("recent_and_weighty"), WHYS("fresh")):
        return is_recent
    if item.slot == "developing":
        return words == WHYS(
            "developing", reports=sum(one.card.story == shown.story for one in feed.in_slot("developing"))
        )
    if item.slot == "explore":
        return shown.section in words
    counted = re.fullmatch(r"You read (\d+) stories (on|in) (.+)\.", words)
    if counted:
        number, where, name = counted.groups()
        of = [one for one in read if name == (one.topic if where == "on" else one.section)]
        return len(of) == int(number) and name in (shown.topic, shown.section)
    titles = {one.title for one in read}
    return any(f"“{title}”" in words for title in titles) and {one.id for one in item.reason.clicks} <= {
        one.id for one in read
    }


def test_every_reason_shown_is_about_this_reader_or_true_of_the_story(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device: Device = make()
    hours = device.parts.serving.feed_context.weights.fresh_hours
    page = device.reading.feed()
    assert [item.reason.words for item in page.items if not is_true(item, page, [], hours)] == []
    click_on(device, backend, TOPIC, 4, clock)
    read = [entry.card for entry in device.library.history().entries if entry.card]
    device.reading.open(read[0].id, page.feed_id)  # a second click on the same story
    shown: list[str] = []
    for visit in range(PAGES):
        clock.go_on(900)
        stories_arrive(device, [card(f"v{visit}", published_at=clock(), section="section3", weight=0.9)], clock())
        clock.go_on(60)
        page = new_page(device)
        device.reading.view(page.feed_id, [item.card.id for item in page.items])
        false = [(item.slot, item.reason.words) for item in page.items if not is_true(item, page, read, hours)]
        assert false == []
        shown += [item.reason.words for item in page.items]
    assert len({words for words in shown if words}) > 3
    assert any(words.startswith("You read 4 stories on") for words in shown)
