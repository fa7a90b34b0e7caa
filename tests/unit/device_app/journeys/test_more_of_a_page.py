"""More stories at the end of a page, stories new since the last one, and pages by name.

Oracles: the fake backend's articles and its list of requests.
"""

from __future__ import annotations

import pytest

from device_app.feed.more import ADDED
from tests.doubles.backend import FakeBackend
from tests.doubles.clock import StillClock
from tests.doubles.journey import TOPIC, Make
from tests.doubles.new_page import new_page


def test_more_extends_the_page_keeps_it_and_sends_no_request(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    first = new_page(device)
    backend.requests.clear()
    longer = device.reading.more(first.feed_id)
    assert longer is not None
    assert longer.items[: len(first.items)] == first.items, "what stood there stands there"
    added = longer.items[len(first.items) :]
    assert len(added) == ADDED
    assert {item.slot for item in added} == {"more"}
    assert [item.position for item in longer.items] == list(range(len(longer.items)))
    assert len({item.card.id for item in longer.items}) == len(longer.items), "nothing twice"
    assert backend.requests == []
    device.reading.open(added[0].card.id, first.feed_id)
    assert device.reading.feed() == device.reading.page(first.feed_id) == longer, "a click changes nothing of it"
    assert device.parts.serving.feed_context.kept.feed(first.feed_id) == longer, "it is stored so"
    assert device.reading.view(first.feed_id, [added[1].card.id]) == 1, "and what was added can be looked at"
    clock.go_on(1)
    assert not {item.slot for item in new_page(device).items} & {"more"}, "another page starts from the beginning"


def test_page_is_complete_when_no_story_is_left(make: Make, backend: FakeBackend) -> None:
    device = make(default_list_limit=50)
    feed = device.reading.feed(refresh=True)
    for _ in range(5):
        assert device.reading.more(feed.feed_id) is not None
    longer = device.reading.page(feed.feed_id)
    assert longer is not None
    assert longer.complete
    assert device.reading.more(feed.feed_id) == longer
    assert device.reading.more("never-made") is None


def test_stories_since_the_previous_page_stay_marked_as_new(
    make: Make, backend: FakeBackend, clock: StillClock
) -> None:
    device = make()
    first = new_page(device)
    assert device.reading.offer(first).came == frozenset(), "a first page has no page before it"
    clock.go_on(60)
    second = new_page(device)
    came = device.parts.stores.news.arrived_since(first.made_at, [item.card.id for item in second.items])
    assert device.reading.offer(second).came <= came
    known = second.items[0].card
    newer = known.model_copy(update={"id": "just-in", "published_at": clock()})
    clock.go_on(60)
    device.parts.stores.news.put_cards([newer], clock())
    assert device.reading.offer(second).came <= came, "what comes later marks nothing on a page that stands"


@pytest.mark.parametrize("with_pool", [True, False])
def test_topic_page_lists_the_whole_pool_copy_without_requests(
    make: Make, backend: FakeBackend, clock: StillClock, *, with_pool: bool
) -> None:
    backend.pool_codes = with_pool
    backend.publish()
    device = make(default_list_limit=50)
    device.sync()
    device.reading.feed(refresh=True)
    backend.requests.clear()
    topic = device.reading.explore()[0].cards[0].topic
    listed = device.whole_pool.cards_of(device.whole_pool.named("topic", topic))
    everywhere = {card.id for card in backend.pool.cards if card.topic == topic}
    found = {card.id for card in listed}
    assert found <= everywhere
    assert [card.published_at for card in listed] == sorted((card.published_at for card in listed), reverse=True)
    if with_pool:
        assert device.whole_pool.size() == len(backend.pool.cards)
        reported = [card.story or card.id for card in backend.pool.cards if card.topic == topic]
        assert len(found) == len(set(reported))
    else:
        assert device.whole_pool.size() is None
        assert len(found) < len(everywhere)
    device.whole_pool.show(listed)
    assert device.reading.open(listed[-1].id).card.topic == topic
    assert backend.requests == [], "neither the page nor the story tells anybody"


def test_story_opened_from_the_pool_copy_counts_as_read(make: Make, backend: FakeBackend, clock: StillClock) -> None:
    backend.pool_codes = True
    backend.publish()
    device = make(default_list_limit=50)
    device.sync()
    device.reading.feed(refresh=True)
    here = set(device.parts.stores.news.missing([card.id for card in backend.pool.cards]))
    only_in_pool = device.whole_pool.cards_of(
        [one for one in device.whole_pool.named("topic", TOPIC) if one in here][:4]
    )
    assert len(only_in_pool) == 4
    device.whole_pool.show(only_in_pool)
    for card in only_in_pool:
        device.reading.open(card.id)
        clock.go_on(60)
    assert device.interests.clusters(), "they have vectors, as coded"


def test_hidden_stories_are_left_out_of_other_pages(make: Make, backend: FakeBackend) -> None:
    device = make()
    device.sync()
    device.reading.feed(refresh=True)
    pool = device.whole_pool
    publisher = pool.cards_of(pool.named("topic", TOPIC))[0].publisher
    device.interests.stance("publisher", publisher, "block")
    assert publisher not in {card.publisher for card in pool.cards_of(pool.named("topic", TOPIC))}
    assert device.whole_pool.named("publisher", publisher), "its own page still shows what is hidden"


def test_empty_page_says_whether_all_was_read_or_nothing_received(make: Make, clock: StillClock) -> None:
    device = make(mode="none", default_list_limit=50)
    opened: set[str] = set()
    while (feed := new_page(device)).items:
        for item in feed.items:
            clock.go_on(1)
            device.reading.open(item.card.id, feed.feed_id)
            opened.add(item.card.id)
    listed = {card.id for section in device.reading.explore() for card in section.cards}
    assert opened <= listed
    assert feed.left_out == len(listed) == 50, "the oracle: what the default list brought"
    assert "no news" not in (feed.notice or "")
